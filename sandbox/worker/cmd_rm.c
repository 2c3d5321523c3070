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
	struct run_outcome outcome;

	(void)err;
	if (!command_resolve(task, task->job->path, path))
		return 0;
	request.path = path;
	if (!command_do(task, &request, NULL, &outcome))
		return 0;
	render_removed(&task->message, path);
	command_set_outcome(task, "removed");
	return 0;
}
