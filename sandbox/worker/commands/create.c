/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <inttypes.h>

#include "base/log.h"

#define CREATE_WAIT_MS 30000
#define REMOVE_WAIT_MS 2000

/* The row comes first, the workspace second.  If a worker dies between them,
 * the next /il create completes the sandbox. */
int
command_make_sandbox(struct task *task, bool *created, struct err *err)
{
	struct worker *worker = task->worker;
	const struct config *config = worker->config;
	int64_t user_id = task->job->user_id;
	const char *id = task->sandbox.id;
	struct err why = { 0 };

	/* a started job counts as one that uses the sandbox */
	if (!task->started && sandbox_give_up(worker->db, user_id, err) < 0)
		return -1;
	if (!run_start(task))
		return 1;
	if (sandbox_create(worker->db, user_id, config->retention_seconds,
		&task->sandbox, created, err) < 0)
		return -1;
	task->run.end = RUN_REFUSED;
	task->run.refusal = lease_command(NULL, worker->lease_socket,
	    &(struct lease_command){ .kind = FRAME_CREATE,
		.sandbox = id,
		.quota_bytes = task->env.config->quota,
		.quota_files = config->files },
	    CREATE_WAIT_MS, &why);
	if (task->run.refusal == REFUSAL_NONE)
		return 0;
	log_warn("no workspace: %s job=%" PRId64, why.text, task->job->id);
	/* A row without a workspace is removed, so that the next command makes
	 * the sandbox anew. */
	if (*created && sandbox_remove(worker->db, id, &why) < 0)
		log_warn("left to the sweeper: %s sandbox=%s", why.text, id);
	else if (*created)
		(void)command_remove_files(worker, id, REMOVE_WAIT_MS);
	command_not_done(task);
	return 1;
}

int
cmd_create(struct task *task, struct err *err)
{
	bool created = false;
	int result = command_make_sandbox(task, &created, err);

	if (result != 0)
		return result;
	render_created(&task->message, &task->sandbox, created,
	    task->env.config);
	task->outcome = created ? "created" : "exists";
	return 0;
}
