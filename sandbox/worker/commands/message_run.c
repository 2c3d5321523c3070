/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "program.h"

/* "Run Python" of a message's menu: from its code on it is `/il py`. */
int
cmd_message_run(struct task *task, struct err *err)
{
	auto_source struct source source = { .pieces = 0 };

	if (!program_find(task, &source) || !command_choose_version(task))
		return 0;
	return program_run(task, &source, err);
}
