/* SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../protocol/cancel.h"
#include "../protocol/lease.h"
#include "../protocol/wake.h"
#include "../rest/rest.h"
#include "../store/db.h"
#include "../store/job.h"
#include "../store/sandbox.h"
#include "deliver.h"
#include "worker.h"

/* A round comes at least this often: operators change rows with sqlite3, and a
 * byte in the FIFO can be lost with the worker that read it. */
#define ROUND_MS 10000
#define EXPIRE_MOST 16 /* sandboxes in one round */
#define REMOVE_WAIT_MS 10000
#define SLOTS_MAX 256
#define PRUNE_EVERY_MS (60 * 60 * 1000)
/* At a time: 5 ms in which nobody else writes; 5,000 rows are 40. */
#define PRUNE_STEP 200
#define PRUNE_STEPS 25
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define JOB_DAYS 30

int
sweep_lock_slot(const struct worker *worker, int64_t slot, struct err *err)
{
	auto_free char *path = xprintf("%s/worker/%" PRId64 ".lock",
	    worker->config->state_dir, slot);
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0660);

	if (fd < 0)
		return err_system(err, "%s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_BUSY,
		    "slot %" PRId64 " has a worker already", slot);
	return steal_fd(&fd);
}

void
sweep_slot(struct worker *worker, int64_t slot)
{
	struct err err = { 0 };
	int count;

	if (!deliver_note(worker)) /* it is still "started" to the database */
		return;
	count = job_recover(worker->db, slot, &err);
	if (count < 0) {
		log_err("%s", err.text);
		return;
	}
	if (count > 0) {
		log_warn("slot %" PRId64 " had left %d jobs", slot, count);
		wake_others(worker->wake_fd, count);
	}
	deliver_untold(worker, slot);
}

/* Every slot that has unfinished jobs and no living worker, and our own. */
static void
sweep_slots(struct worker *worker)
{
	int64_t slots[SLOTS_MAX];
	struct err err = { 0 };
	int count = job_slots(worker->db, slots, SLOTS_MAX, &err);

	if (count < 0)
		log_err("%s", err.text);
	for (int i = 0; i < count; i++) {
		bool own = slots[i] == worker->slot;
		auto_close int lock = own ?
		    -1 :
		    sweep_lock_slot(worker, slots[i], &err);

		if (own || lock >= 0)
			sweep_slot(worker, slots[i]);
	}
}

/* True: try the next one. */
static bool
remove_expired(struct worker *worker)
{
	struct sandbox sandbox;
	struct err err = { 0 };
	int result = sandbox_take_expired(worker->db, &sandbox, &err);

	if (result != 0) {
		if (result < 0)
			log_err("%s", err.text);
		return false;
	}
	if (lease_command(NULL, worker->lease_socket,
		&(struct lease_command){
		    .kind = FRAME_REMOVE, .sandbox = sandbox.id },
		REMOVE_WAIT_MS, &err) != REFUSAL_NONE) {
		/* the row is not given again for a minute */
		log_warn("not removed yet: %s sandbox=%s", err.text,
		    sandbox.id);
		return false;
	}
	/* the files are gone: now the row may say so */
	if (sandbox_gone(worker->db, sandbox.id, &err) < 0) {
		log_err("%s sandbox=%s", err.text, sandbox.id);
		return false;
	}
	log_info("removed sandbox=%s user=%" PRId64, sandbox.id,
	    sandbox.user_id);
	return true;
}

/* Rows that are too old, in small steps: fronts write between them.  True:
 * there may be more. */
static bool
prune(struct db *db, enum statement which, int64_t days)
{
	struct err err = { 0 };
	int count = PRUNE_STEP;

	for (int i = 0; i < PRUNE_STEPS && count == PRUNE_STEP; i++)
		count = db_prune(db, which, days * DAY_MS, PRUNE_STEP, &err);
	if (count < 0)
		log_err("%s", err.text);
	return count == PRUNE_STEP;
}

/* A busy day's rows take several rounds. */
static void
prune_all(struct worker *worker)
{
	bool jobs = prune(worker->db, STATEMENT_JOB_PRUNE, JOB_DAYS);
	bool views = prune(worker->db, STATEMENT_VIEW_PRUNE,
	    worker->config->keep_days);

	if (!jobs && !views)
		worker->prune_at_ms = clock_monotonic_ms() + PRUNE_EVERY_MS;
}

int64_t
sweep_run(struct worker *worker)
{
	struct err err = { 0 };
	int64_t seconds;

	rest_note_end(worker->rest);
	sweep_slots(worker);
	for (int i = 0; i < EXPIRE_MOST && remove_expired(worker); i++)
		;
	if (clock_monotonic_ms() >= worker->prune_at_ms) {
		prune_all(worker);
		cancel_sweep(worker->config);
	}
	/* nobody waits for us now: fronts do without this (db.h) */
	db_checkpoint(worker->db);
	seconds = sandbox_next_expiry(worker->db, &err);
	if (seconds < 0 || seconds > ROUND_MS / 1000)
		return clock_monotonic_ms() + ROUND_MS;
	return clock_monotonic_ms() + seconds * 1000;
}
