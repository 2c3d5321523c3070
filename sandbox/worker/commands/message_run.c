/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "program.h"

/* "Run Python" of a message's menu: from its code on it is `/il py`. */
int
cmd_message_run(struct task *task, struct err *err)
{
	auto_source struct source source = { .pieces = 0 };

	int found = program_find(task, task->job->view_id, &source, err);

	if (found != 0)
		return found < 0 ? -1 : 0;
	task->job->view_id = 0; /* it is a run of its own */
	return command_choose_version(task) ? program_run(task, &source, err) :
					      0;
}
