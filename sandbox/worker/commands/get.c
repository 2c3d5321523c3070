/* SPDX-License-Identifier: MIT */
#include "command.h"

static bool
ask(struct task *task, void *request)
{
	return command_ask(task, request);
}

int
cmd_get(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_READ,
		.max_bytes = task->env.file_most,
	};
	struct collect *collect = &task->collect;

	/* a larger one is refused by the cell, which tells its size */
	collect_init(collect, 0, (size_t)request.max_bytes);
	if (!command_resolve(task) || !command_look(task, ask, &request))
		return 0;
	if (collect->file_count != 1)
		return err_set(err, ERR_PROTOCOL, "the cell sent no file");
	render_get(&task->message, &collect->files[0], &task->env);
	task->outcome = "sent";
	return 0;
}
