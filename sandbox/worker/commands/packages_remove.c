/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "../render/render_packages.h"

/* In a cell that mounts nothing but the packages, as they are read-only to
 * code. */
int
cmd_packages_remove(struct task *task, struct err *err)
{
	const char *name = task->job->text;
	struct cell_request request = {
		.op = OP_UNINSTALL,
		.name = name,
		.wall_ms = FILE_OP_MS,
	};

	(void)err;
	if (!command_choose_version(task))
		return 0;
	run_once(task, "packages", ACCESS_TIDY, &request,
	    config_lease_wait_ms(task->worker->config));
	/* nothing was ever installed for that Python, or not this */
	if ((task->run.end == RUN_REFUSED &&
		task->run.refusal == REFUSAL_NO_WORKSPACE) ||
	    outcome_failed_with(&task->run, ERROR_NOT_FOUND)) {
		render_no_package(&task->message, name);
		task->outcome = "not installed";
	} else if (command_succeeded(task)) {
		render_uninstalled(&task->message, name);
		task->outcome = "removed";
	}
	return 0;
}
