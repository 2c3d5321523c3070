/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <inttypes.h>

#include "../../base/log.h"

#define CREATE_WAIT_MS 30000
#define REMOVE_WAIT_MS 2000

/* The row comes first, the workspace second.  Both can be made again: a worker
 * that died between them has left what the next /il create completes. */
int
cmd_create(struct task *task, struct err *err)
{
	const struct config *config = task->worker->config;
	const char *id = task->sandbox.id;
	struct err why = { 0 };
	bool created = false;

	if (!run_start(task))
		return 0;
	if (sandbox_create(task->worker->db, task->job->user_id,
		config->retention_seconds, &task->sandbox, &created, err) < 0)
		return -1;
	task->run.end = RUN_REFUSED;
	task->run.refusal = lease_create_workspace(task->worker->lease_socket,
	    id, config->quota, config->files, CREATE_WAIT_MS, &why);
	if (task->run.refusal == REFUSAL_NONE) {
		render_created(&task->message, &task->sandbox, created, config);
		task->outcome = created ? "created" : "exists";
		return 0;
	}
	log_warn("no workspace: %s job=%" PRId64, why.text, task->job->id);
	/* A row without a workspace is taken back, so that its owner is told
	 * to create one rather than that something is broken. */
	if (created && sandbox_remove(task->worker->db, id, &why) < 0)
		log_warn("left to the sweeper: %s sandbox=%s", why.text, id);
	else if (created)
		(void)command_remove_files(task, REMOVE_WAIT_MS);
	command_not_done(task);
	return 0;
}
