/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "../render/render_packages.h"

#define PACKAGES_MOST 1000
#define RECORD_MAX (1 << 20) /* bytes from which a size is added up */
#define LIST_MAX (1 << 20)

/* In a cell of the user's, where packages can be read: it is warm. */
int
cmd_packages_list(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_PACKAGES,
		.count = PACKAGES_MOST,
		.max_bytes = RECORD_MAX,
		.output_max = LIST_MAX,
	};

	(void)err;
	collect_init(&task->collect, LIST_MAX, 0);
	if (!command_choose_version(task) || !command_do(task, &request))
		return 0;
	render_packages(&task->message, &task->collect.output,
	    &task->run.result, &task->env);
	task->outcome = "listed";
	return 0;
}
