/* SPDX-License-Identifier: MIT */
#include "moved.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../protocol/lease.h"
#include "../protocol/snapshot.h"
#include "../store/node.h"
#include "../store/sandbox.h"
#include "task.h"
#include "worker.h"

#define CREATE_WAIT_MS 30000
#define RESTORE_WAIT_MS 300000

/* Its files as they were last, from a snapshot of the id that it had.  0:
 * *files_at is as in struct sandbox.  A snapshot that is damaged stays so: it
 * begins empty, and its owner and the operator are told.  So it does where an
 * earlier try has begun it so. */
static int
bring_files(const struct worker *worker, const struct sandbox *sandbox,
    int64_t *files_at, struct err *err)
{
	int64_t time_ms = 0;
	int result = 1;

	if (*worker->config->snapshots != '\0')
		result = snapshot_restore(worker->config, sandbox->moved_from,
		    sandbox->id, RESTORE_WAIT_MS, &time_ms, err);
	*files_at = result == 0 ? time_ms / 1000 : 0;
	if (result >= 0)
		return 0;
	if (err->code != ERR_INPUT && err->code != ERR_CONFLICT)
		return -1;
	*files_at = FILES_UNREAD;
	log_err("not restored: %s sandbox=%s from=%s", err->text, sandbox->id,
	    sandbox->moved_from);
	return 0;
}

bool
moved_away(struct task *task)
{
	const struct sandbox *sandbox = &task->sandbox;
	bool away = sandbox->home != node_number(task->worker->db);

	if (away)
		log_warn("its sandbox is at home elsewhere: job=%" PRId64
			 " sandbox=%s",
		    task->job->id, sandbox->id);
	task->taken |= away;
	return away;
}

/* All workers that may do this are of this host: a byte of one file for each
 * person.  It is free when the descriptor closes. */
static int
lock_user(const struct worker *worker, int64_t user_id, struct err *err)
{
	auto_free char *path = config_state_path(worker->config,
	    "worker/moved.lock");
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0660);
	struct flock byte = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = user_id,
		.l_len = 1,
	};

	if (fd < 0 || TEMP_FAILURE_RETRY(fcntl(fd, F_OFD_SETLKW, &byte)) != 0)
		return err_system(err, "%s", path);
	return steal_fd(&fd);
}

/* With the lock: is it still to be done? */
static int
bring(struct task *task, struct err *err)
{
	struct worker *worker = task->worker;
	struct sandbox *sandbox = &task->sandbox;
	const char *socket = worker->lease_socket;
	int64_t files_at = 0;
	struct err why = { 0 };
	int result;

	if (sandbox_find(worker->db, sandbox->user_id, sandbox, err) != 0)
		return -1;
	if (moved_away(task))
		return 1;
	if (sandbox->moved_from[0] == '\0')
		return 0;
	if (bring_files(worker, sandbox, &files_at, err) != 0)
		return -1;
	task->run.end = RUN_REFUSED;
	task->run.refusal = lease_create_workspace(socket, sandbox->id,
	    task->env.config->quota, worker->config->files, CREATE_WAIT_MS,
	    &why);
	if (task->run.refusal != REFUSAL_NONE) {
		log_warn("no workspace: %s job=%" PRId64, why.text,
		    task->job->id);
		return 1;
	}
	sandbox->files_at = files_at;
	log_info("host %s was lost: sandbox=%s from=%s files_at=%" PRId64,
	    sandbox->moved_host, sandbox->id, sandbox->moved_from, files_at);
	/* it may have moved on meanwhile */
	result = sandbox_settled(worker->db, sandbox->id, files_at, err);
	task->taken |= result == 1;
	return result;
}

int
moved_bring(struct task *task, struct err *err)
{
	const struct sandbox *sandbox = &task->sandbox;
	auto_close int lock = -1;
	int result = moved_away(task);

	if (result == 0 && sandbox->moved_from[0] != '\0') {
		lock = lock_user(task->worker, sandbox->user_id, err);
		result = lock < 0 ? -1 : bring(task, err);
	}
	task->tells_move = result == 0 && sandbox->moved_host[0] != '\0';
	return result;
}

void
moved_told(struct task *task)
{
	struct err err = { 0 };

	if (task->tells_move && !task->taken &&
	    sandbox_told(task->worker->db, task->sandbox.id, &err) < 0)
		log_warn("%s sandbox=%s", err.text, task->sandbox.id);
}
