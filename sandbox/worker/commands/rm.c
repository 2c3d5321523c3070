/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <string.h>

#include "worker/render/render_where.h"

/* Is the path that of the sandbox itself, or of something above it? */
static bool
names_top(const struct job *job, const char *cwd)
{
	char path[PATH_SIZE];
	enum path_result result = path_resolve(cwd, job->path, path);

	return result == PATH_OK ? path[0] == '\0' :
				   job->path[strspn(job->path, "./~")] == '\0';
}

int
cmd_rm(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_REMOVE,
		.recursive = task->job->recursive,
		.wall_ms = FILE_OP_MS,
	};
	bool good;

	(void)err;
	if (names_top(task->job, task->sandbox.cwd)) {
		buf_adds(&task->message.lead, _(TEXT_SANDBOX_STAYS));
		task->outcome = "stays";
		return 0;
	}
	if (!command_resolve(task))
		return 0;
	request.path = path_in_packages(task->path);
	if (request.path == NULL) {
		good = command_do(task, &request);
	} else {
		/* The user's cells cannot write to packages, so a cell that
		 * mounts nothing else removes them. */
		run_once(task, "packages", &request);
		good = command_succeeded(task);
	}
	if (!good)
		return 0;
	buf_addf(&task->message.lead, _(TEXT_REMOVED_PATH),
	    phrase_path(task->path).text);
	place_leave(task, task->path);
	task->outcome = "removed";
	return 0;
}
