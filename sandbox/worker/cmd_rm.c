#include "command.h"

#include "worker.h"

int
cmd_rm(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_REMOVE,
		.recursive = task->job->recursive,
		.wall_ms = FILE_OP_MS,
	};
	char path[PATH_SIZE];
	struct run run;

	(void)err;
	if (!command_resolve(task, task->job->path, path))
		return 0;
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
	render_removed(&task->message, path);
	command_set_outcome(task, "removed");
	return 0;
}
