/* SPDX-License-Identifier: MIT */
#include "command.h"

int
cmd_rm(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_REMOVE,
		.recursive = task->job->recursive,
		.wall_ms = FILE_OP_MS,
	};
	bool good;

	(void)err;
	if (!command_resolve(task))
		return 0;
	request.path = path_in_packages(task->path);
	if (request.path == NULL) {
		good = command_do(task, &request);
	} else {
		/* In a cell of the user's the packages can only be read: what
		 * installs them mounts nothing else, and so does what removes
		 * them. */
		run_once(task, "packages", ACCESS_TIDY, &request,
		    config_lease_wait_ms(task->worker->config));
		good = command_succeeded(task);
	}
	if (!good)
		return 0;
	render_removed(&task->message, task->path);
	task->outcome = "removed";
	return 0;
}
