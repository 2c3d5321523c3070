/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <inttypes.h>

#include "base/log.h"

#define LOG_MAX (4 * 1024 * 1024)
#define WAIT_MS 60000

/* Lease a cell; the first packages of a version need a volume, which is made
 * here. */
static bool
open_cell(struct task *task, const struct cell_request *request)
{
	struct err err = { 0 };

	if (run_open(task, "pip", ACCESS_WRITE, request->wall_ms))
		return true;
	if (task->run.refusal != REFUSAL_NO_WORKSPACE)
		return false;
	task->run.refusal = lease_command(NULL, task->worker->lease_socket,
	    &(struct lease_command){ .kind = FRAME_CREATE,
		.sandbox = task->sandbox.id,
		.interpreter = task->version },
	    WAIT_MS, &err);
	if (task->run.refusal == REFUSAL_NONE)
		return run_open(task, "pip", ACCESS_WRITE, request->wall_ms);
	log_warn("no packages: %s job=%" PRId64 " sandbox=%s", err.text,
	    task->job->id, task->sandbox.id);
	return false;
}

int
cmd_pip(struct task *task, struct err *err)
{
	auto_requirements struct requirements words;
	enum requirements_result result = requirements_parse(&words,
	    task->job->text);
	struct cell_request request = {
		.op = OP_PIP,
		.args = (const char *const *)words.words,
		.wall_ms = task->worker->config->pip_timeout_ms,
		.output_max = LOG_MAX,
	};

	(void)err;
	if (!command_choose_version(task))
		return 0;
	/* only requirements reach pip */
	if (result != REQUIREMENTS_OK) {
		render_bad_requirements(&task->message, result, &words);
		task->outcome = "not a requirement";
		return 0;
	}
	task->tick = command_show_progress;
	collect_init(&task->collect, LOG_MAX, 0);
	if (open_cell(task, &request))
		(void)run_request(task, &request);
	run_close(task);
	if (command_has_run(task))
		render_pip(&task->message, &task->run, &task->collect.output,
		    words.words, &task->env);
	return 0;
}
