/* SPDX-License-Identifier: MIT */
#include "command.h"

int
cmd_create(struct task *task, struct err *err)
{
	bool created = false;
	int result = command_make_sandbox(task, &created, err);

	if (result != 0)
		return result;
	render_created(&task->message, &task->sandbox, created,
	    task->env.config);
	task->outcome = created ? "created" : "exists";
	return 0;
}
