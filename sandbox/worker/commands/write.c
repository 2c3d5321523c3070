/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "../../base/cleanup.h"
#include "source.h"

int
cmd_write(struct task *task, struct err *err)
{
	struct cell_request request = { .op = OP_WRITE };
	auto_free char *content = source_content(task->job->text,
	    &request.content_len);

	(void)err;
	request.content = content;
	if (!command_names_file(task) || !command_resolve(task) ||
	    !command_do(task, &request))
		return 0;
	render_written(&task->message, task->path, (int64_t)request.content_len,
	    &task->run, &task->env);
	task->outcome = "written";
	return 0;
}
