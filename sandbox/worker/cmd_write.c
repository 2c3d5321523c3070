#include "command.h"

#include <string.h>

#include "../base/cleanup.h"
#include "source.h"
#include "worker.h"

int
cmd_write(struct task *task, struct err *err)
{
	struct render_env env = command_env(task);
	struct cell_request request = { .op = OP_WRITE, .wall_ms = FILE_OP_MS };
	char path[PATH_SIZE];
	auto_free char *content = NULL;
	struct run run;

	(void)err;
	if (!command_resolve(task, task->job->path, path))
		return 0;
	content = source_content(task->job->text, &request.content_len);
	request.content = content;
	request.path = path;
	if (run_open(&run, task, "user", FILE_OP_MS, LEASE_WAIT_MS))
		(void)run_request(&run, &request, FILE_OP_MS, NULL);
	run_close(&run);
	if (task->taken)
		return 0;
	command_note_usage(task, &run.outcome);
	if (!outcome_succeeded(&run.outcome)) {
		command_not_done(task, &run.outcome, path);
		return 0;
	}
	render_written(&task->message, path, (int64_t)request.content_len,
	    &run.outcome, &env);
	command_set_outcome(task, "written");
	return 0;
}
