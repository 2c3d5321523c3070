#include "command.h"

#include "../../base/config.h"
#include "../worker.h"

/* In a cell of the user's the packages can only be read: what installs them
 * mounts nothing else, and so does what removes them. */
static bool
remove_packages(struct task *task, const struct cell_request *request,
    const char *path)
{
	struct cell_request within = *request;
	struct run_outcome outcome;
	struct run run;

	within.path = path;
	if (run_open(&run, task, "packages", ACCESS_TIDY, FILE_OP_MS,
		config_lease_wait_ms(task->worker->config)))
		(void)run_request(&run, &within, FILE_OP_MS, NULL);
	run_close(&run);
	outcome = run.outcome;
	if (task->taken)
		return false;
	if (outcome_succeeded(&outcome))
		return true;
	command_not_done(task, &outcome, request->path);
	return false;
}

int
cmd_rm(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_REMOVE,
		.recursive = task->job->recursive,
		.wall_ms = FILE_OP_MS,
	};
	char path[PATH_SIZE];
	const char *within;
	struct run_outcome outcome;

	(void)err;
	if (!command_resolve(task, task->job->path, path))
		return 0;
	request.path = path;
	within = path_in_packages(path);
	if (within != NULL ?
		!remove_packages(task, &request, within) :
		!command_do(task, "user", &request, NULL, &outcome))
		return 0;
	render_removed(&task->message, path);
	command_set_outcome(task, "removed");
	return 0;
}
