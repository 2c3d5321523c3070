/* SPDX-License-Identifier: MIT */
#include "command.h"

/* In a cell of the user's the packages can only be read: what installs them
 * mounts nothing else, and so does what removes them. */
static bool
remove_packages(struct task *task, struct cell_request *request)
{
	request->path = path_in_packages(task->path);
	request->wall_ms = FILE_OP_MS;
	run_once(task, "packages", ACCESS_TIDY, request,
	    config_lease_wait_ms(task->worker->config));
	return command_succeeded(task);
}

int
cmd_rm(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_REMOVE,
		.recursive = task->job->recursive,
	};

	(void)err;
	if (!command_resolve(task))
		return 0;
	if (path_in_packages(task->path) != NULL ?
		!remove_packages(task, &request) :
		!command_do(task, &request))
		return 0;
	render_removed(&task->message, task->path);
	task->outcome = "removed";
	return 0;
}
