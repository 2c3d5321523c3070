#include "job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "db.h"

#define RATE_WINDOW_MS 60000

/* Length of the queue, -1 on error.  Counting costs by the length, so it is
 * done once for a group: nobody else changes it meanwhile. */
static int64_t
unfinished(struct db *db, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_UNFINISHED);
	int64_t *note = db_group_note(db);
	int64_t count;

	if (note != NULL && *note >= 0)
		return *note;
	if (db_step(db, s, err) < 0)
		return -1;
	count = db_column_int(s, 0);
	if (note != NULL)
		*note = count;
	return count;
}

/* What may be wrong with a new job, in the order in which it is told. */
static enum job_insert_result
insert_check(struct db *db, const struct job *job,
    const struct job_limits *limits, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_CHECK);
	int64_t count = unfinished(db, err);

	if (count < 0)
		return JOB_INSERT_FAILED;
	/* The wait for the other writers is over by now. */
	if (limits->until_ms != 0 && clock_wall_ms() > limits->until_ms)
		return JOB_LATE;
	db_bind_int(s, ":interaction_id", job->interaction_id);
	db_bind_int(s, ":user_id", job->user_id);
	db_bind_int(s, ":since_ms", job->received_ms - RATE_WINDOW_MS);
	db_bind_int(s, ":rate", limits->user_rate);
	if (db_step(db, s, err) < 0)
		return JOB_INSERT_FAILED;
	if (db_column_int(s, 0) != 0)
		return JOB_REPEATED;
	if (db_column_int(s, 1) != 0 &&
	    commands[job->kind].needs != COMMAND_NEEDS_NOTHING)
		return JOB_RUNNING;
	if (db_column_int(s, 2) >= limits->user_rate)
		return JOB_TOO_MANY;
	if (count >= limits->queue_max)
		return JOB_QUEUE_FULL;
	return JOB_INSERTED;
}

static int
insert_row(struct db *db, struct job *job, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_INSERT);

	job_row_bind(s, job);
	if (db_run(db, s, NULL, err) != 0)
		return -1;
	job->id = db_last_id(db);
	if (db_group_note(db) != NULL)
		++*db_group_note(db);
	return 0;
}

enum job_insert_result
job_insert(struct db *db, struct job *job, const struct job_limits *limits,
    struct err *err)
{
	enum job_insert_result result;

	if (db_begin(db, err) != 0)
		return JOB_INSERT_FAILED;
	result = insert_check(db, job, limits, err);
	if (result == JOB_INSERTED && insert_row(db, job, err) != 0)
		result = JOB_INSERT_FAILED;
	if (result != JOB_INSERTED)
		db_rollback(db);
	else if (db_commit(db, err) != 0)
		result = JOB_INSERT_FAILED;
	if (result == JOB_INSERTED)
		job->state = JOB_QUEUED;
	return result;
}

int
job_peek(struct db *db, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_PEEK);

	if (db_step(db, s, err) < 0)
		return -1;
	return db_column_int(s, 0) != 0 ? 0 : 1;
}

/* Take the one row of s into job, and step s to its end: only then is a
 * RETURNING statement committed.  1: there is no row. */
static int
take_row(struct db *db, sqlite3_stmt *s, struct job *job, struct err *err)
{
	int result = db_step(db, s, err);

	if (result == 0)
		return 1;
	if (result == 1) {
		job_row_read(s, job);
		result = db_step(db, s, err);
	}
	if (result == 0)
		return 0;
	job_release(job);
	return -1;
}

int
job_claim(struct db *db, int64_t slot, struct job *job, struct err *err)
{
	/* An empty queue is found without the lock that fronts wait for. */
	int result = job_peek(db, err);

	job_init(job);
	if (result != 0)
		return result;
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_CLAIM);

	db_bind_int(s, ":slot", slot);
	db_bind_int(s, ":now_ms", clock_wall_ms());
	db_lasting(db, false); /* queued again after a power cut: as well */
	result = take_row(db, s, job, err);
	db_lasting(db, true);
	return result < 0 ? err_wrap(err, "claim a job") : result;
}

/* Run a change of one row's state.  1: it was not in that state. */
static int
change(struct db *db, sqlite3_stmt *s, const char *what, int64_t id,
    struct err *err)
{
	int changes = 0;

	db_bind_int(s, ":id", id);
	db_bind_int(s, ":now_ms", clock_wall_ms());
	if (db_run(db, s, &changes, err) != 0)
		return err_wrap(err, "%s job %" PRId64, what, id);
	return changes == 1 ? 0 : 1;
}

int
job_start(struct db *db, int64_t id, int64_t slot, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_START);

	db_bind_int(s, ":slot", slot);
	return change(db, s, "start", id, err);
}

int
job_finish(struct db *db, int64_t id, int64_t slot, const char *body,
    const char *outcome, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_FINISH);

	db_bind_int(s, ":slot", slot);
	db_bind_text(s, ":body", body);
	db_bind_text(s, ":outcome", outcome);
	return change(db, s, "finish", id, err);
}

int
job_delivered(struct db *db, int64_t id, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_DELIVERED);
	int result;

	db_lasting(db, false); /* told again after a power cut: the same */
	result = change(db, s, "deliver", id, err);
	db_lasting(db, true);
	return result;
}

int
job_undeliverable(struct db *db, int64_t id, const char *why, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db,
	    STATEMENT_JOB_UNDELIVERABLE);

	db_bind_text(s, ":why", why);
	return change(db, s, "give up", id, err);
}

/* Run one half of the recovery; the number of jobs is added to *count. */
static int
recover(struct db *db, enum statement which, int64_t slot, int *count,
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, which);
	int changes = 0;

	db_bind_int(s, ":slot", slot);
	if (db_run(db, s, &changes, err) != 0)
		return -1;
	*count += changes;
	return 0;
}

int
job_recover(struct db *db, int64_t slot, struct err *err)
{
	int count = 0;

	if (db_begin(db, err) != 0)
		return -1;
	if (recover(db, STATEMENT_JOB_REQUEUE, slot, &count, err) == 0 &&
	    recover(db, STATEMENT_JOB_LOSE, slot, &count, err) == 0 &&
	    db_commit(db, err) == 0)
		return count;
	db_rollback(db);
	return err_wrap(err, "recover slot %" PRId64, slot);
}

int
job_next_untold(struct db *db, int64_t slot, int64_t after, struct job *job,
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_NEXT_UNTOLD);

	job_init(job);
	db_bind_int(s, ":slot", slot);
	db_bind_int(s, ":after", after);
	return take_row(db, s, job, err);
}

int
job_slots(struct db *db, int64_t *slots, int cap, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_SLOTS);
	int count = 0;
	int result = 1;

	while (count < cap && (result = db_step(db, s, err)) == 1)
		slots[count++] = db_column_int(s, 0);
	return result < 0 ? -1 : count;
}

int
job_count(struct db *db, struct job_counts *counts, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_COUNT);
	int64_t oldest;

	if (db_step(db, s, err) < 0)
		return err_wrap(err, "count jobs");
	oldest = db_column_int(s, 3);
	*counts = (struct job_counts){
		.queued = db_column_int(s, 0),
		.running = db_column_int(s, 1),
		.untold = db_column_int(s, 2),
	};
	if (oldest != 0)
		counts->oldest_ms = clock_wall_ms() - oldest;
	if (counts->oldest_ms < 0) /* the clock was set back */
		counts->oldest_ms = 0;
	return 0;
}

int
job_prune(struct db *db, int64_t older_than_ms, int most, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_JOB_PRUNE);
	int changes = 0;

	db_bind_int(s, ":before_ms", clock_wall_ms() - older_than_ms);
	db_bind_int(s, ":most", most);
	if (db_run(db, s, &changes, err) != 0)
		return err_wrap(err, "prune jobs");
	return changes;
}
