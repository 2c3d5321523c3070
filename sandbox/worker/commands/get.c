#include "command.h"

#include "../../base/err.h"
#include "../render/collect.h"
#include "../worker.h"

static int
finish(struct task *task, struct collect *collect, struct err *err)
{
	struct render_env env = command_env(task);

	if (collect->file_count != 1)
		return err_set(err, ERR_PROTOCOL, "the cell sent no file");
	render_get(&task->message, &collect->files[0], &env);
	command_set_outcome(task, "sent");
	return 0;
}

int
cmd_get(struct task *task, struct err *err)
{
	struct cell_request request = { .op = OP_READ, .wall_ms = FILE_OP_MS };
	char path[PATH_SIZE];
	struct collect collect;
	struct cell_sink sink = { .event = collect_event, .arg = &collect };
	struct run_outcome outcome;
	int result = 0;

	if (!command_resolve(task, task->job->path, path))
		return 0;
	request.path = path;
	request.max_bytes = command_env(task).file_most;
	collect_init(&collect, 0, (size_t)request.max_bytes);
	if (command_do(task, "user", &request, &sink, &outcome))
		result = finish(task, &collect, err);
	collect_release(&collect);
	return result;
}
