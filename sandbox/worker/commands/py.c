#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/config.h"
#include "../render/collect.h"
#include "../worker.h"
#include "source.h"

/* In tracebacks: File "/code/main.py", line 1. */
#define SOURCE_NAME "main.py"

/* Room in the message that the output may need as a file. */
static int64_t
files_total(const struct config *config, const struct render_env *env)
{
	int64_t output = config->output_limit;

	if (!env->may_attach)
		return 0;
	return output < MESSAGE_BYTES_MAX ? MESSAGE_BYTES_MAX - output : 0;
}

static void
finish(struct task *task, const struct run *run, struct collect *collect,
    const struct render_env *env, const char *path)
{
	const struct run_outcome *outcome = &run->outcome;
	bool ran = outcome->end != RUN_REFUSED && outcome->end != RUN_TOO_LATE;

	command_note_usage(task, outcome);
	if (!ran ||
	    (outcome->end == RUN_RESULT &&
		outcome->result.reason == REASON_ERROR)) {
		command_not_done(task, outcome, path);
		return;
	}
	render_run(&task->message, outcome, collect, env);
	outcome_word(outcome, task->outcome, sizeof(task->outcome));
}

static void
run_python(struct task *task, struct cell_request *request, const char *path)
{
	const struct config *config = task->worker->config;
	struct render_env env = command_env(task);
	struct collect collect;
	struct cell_sink sink = { .event = collect_event, .arg = &collect };
	struct run run;

	request->op = OP_RUN;
	request->cwd = task->sandbox.cwd;
	request->input = task->job->input;
	request->input_len = strlen(task->job->input);
	request->echo = config->echo_last_expr;
	request->merge = true;
	request->wall_ms = config->timeout_ms;
	request->output_max = config->output_limit;
	request->collect_files = COLLECT_FILES;
	request->collect_bytes = env.file_most;
	request->collect_total = files_total(config, &env);
	collect_init(&collect, (size_t)config->output_limit,
	    (size_t)request->collect_total);
	if (run_open(&run, task, "user", ACCESS_ANY, config->timeout_ms,
		config_lease_wait_ms(config)))
		(void)run_request(&run, request, config->timeout_ms, &sink);
	run_close(&run);
	if (!task->taken)
		finish(task, &run, &collect, &env, path);
	collect_release(&collect);
}

int
cmd_py(struct task *task, struct err *err)
{
	struct cell_request request = { .name = SOURCE_NAME };
	char path[PATH_SIZE] = "";
	auto_free char *source = NULL;

	(void)err;
	if (task->job->has_text || task->job->path[0] == '\0') {
		source = source_code(task->job->text, &request.source_len);
		request.source = source;
	} else {
		if (!command_resolve(task, task->job->path, path))
			return 0;
		request.path = path;
	}
	run_python(task, &request, path);
	return 0;
}
