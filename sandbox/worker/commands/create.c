#include "command.h"

#include <inttypes.h>

#include "../../base/config.h"
#include "../../base/err.h"
#include "../../base/log.h"
#include "../worker.h"

#define CREATE_WAIT_MS 30000
#define REMOVE_WAIT_MS 2000

/* A row without a workspace is taken back, so that its owner is told to create
 * one rather than that something is broken. */
static void
take_back(struct task *task)
{
	struct err err = { 0 };

	if (sandbox_remove(task->worker->db, task->sandbox.id, &err) < 0 ||
	    lease_remove_workspace(task->worker->lease_socket, task->sandbox.id,
		REMOVE_WAIT_MS, &err) != REFUSAL_NONE ||
	    sandbox_gone(task->worker->db, task->sandbox.id, &err) < 0)
		log_warn("left to the sweeper: %s sandbox=%s", err.text,
		    task->sandbox.id);
}

/* The row comes first, the workspace second.  Both can be made again: a worker
 * that died between them has left what the next /il create completes. */
int
cmd_create(struct task *task, struct err *err)
{
	const struct config *config = task->worker->config;
	enum refusal outcome;
	struct err why = { 0 };
	bool created = false;

	if (!run_start(task))
		return 0;
	if (sandbox_create(task->worker->db, task->job->user_id,
		config->retention_seconds, &task->sandbox, &created, err) < 0)
		return -1;
	outcome = lease_create_workspace(task->worker->lease_socket,
	    task->sandbox.id, config->quota, config->files, CREATE_WAIT_MS,
	    &why);
	if (outcome != REFUSAL_NONE) {
		struct run_outcome refused = { .end = RUN_REFUSED,
			.refusal = outcome };

		log_warn("no workspace: %s job=%" PRId64, why.text,
		    task->job->id);
		if (created)
			take_back(task);
		command_not_done(task, &refused, "");
		return 0;
	}
	render_created(&task->message, &task->sandbox, created, config);
	command_set_outcome(task, created ? "created" : "exists");
	return 0;
}
