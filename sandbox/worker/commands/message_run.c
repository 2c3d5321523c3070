/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdlib.h>

#include "../render/render_program.h"
#include "program.h"

/* "Run Python" of a message's menu: from its code on it is `/il py`. */
int
cmd_message_run(struct task *task, struct err *err)
{
	auto_blocks struct blocks blocks = { .count = 0 };
	struct job *job = task->job;
	int result;

	if (!program_find(task, &blocks))
		return 0;
	free(job->text);
	job->text = buf_steal(&blocks.code, NULL);
	job->attachment_url[0] = '\0';
	result = cmd_py(task, err);
	if (result == 0 && !task->taken)
		render_left_out(&task->message, blocks.others,
		    blocks.other_count);
	return result;
}
