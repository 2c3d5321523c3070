/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#define ENTRIES_MOST 10000 /* of a zip */

/* Read a file as it is, a directory as a zip: only the cell knows which the
 * path is. */
static bool
get_read(struct task *task, void *arg)
{
	struct cell_request read = {
		.op = OP_READ,
		.path = task->path,
		.max_bytes = task->env.file_most,
	};
	bool *is_archive = arg;

	*is_archive = false;
	/* the cell refuses a larger file, and reports its size */
	if (command_ask(task, read))
		return true;
	*is_archive = outcome_failed_with(&task->run, ERROR_IS_DIRECTORY);
	read.op = OP_ARCHIVE;
	read.count = ENTRIES_MOST;
	return *is_archive && command_ask(task, read);
}

int
cmd_get(struct task *task, struct err *err)
{
	struct collect *collect = &task->collect;
	bool is_archive = false;

	collect_init(collect, 0, (size_t)task->env.file_most);
	if (!command_resolve(task) ||
	    !command_look(task, get_read, &is_archive))
		return 0;
	if (is_archive)
		render_archive(&task->message, task->path, collect,
		    task->run.result.total, &task->env);
	else if (collect->file_count == 1)
		render_get(&task->message, &collect->files[0], &task->env);
	else
		return err_set(err, ERR_PROTOCOL, "the cell sent no file");
	task->outcome = "sent";
	return 0;
}
