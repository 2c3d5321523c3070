#include "command.h"

#include <string.h>

#include "../../base/cleanup.h"
#include "../worker.h"
#include "source.h"

int
cmd_write(struct task *task, struct err *err)
{
	struct render_env env = command_env(task);
	struct cell_request request = { .op = OP_WRITE, .wall_ms = FILE_OP_MS };
	char path[PATH_SIZE];
	auto_free char *content = NULL;
	struct run_outcome outcome;

	(void)err;
	if (!command_resolve(task, task->job->path, path))
		return 0;
	content = source_content(task->job->text, &request.content_len);
	request.content = content;
	request.path = path;
	if (!command_do(task, "user", &request, NULL, &outcome))
		return 0;
	render_written(&task->message, path, (int64_t)request.content_len,
	    &outcome, &env);
	command_set_outcome(task, "written");
	return 0;
}
