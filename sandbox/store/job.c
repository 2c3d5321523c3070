/* SPDX-License-Identifier: MIT */
#include "store/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "store/db.h"
#include "store/row.h"

#define RATE_WINDOW_MS 60000
/* Each of them takes a worker, for LIMIT_LOOK_MS at most. */
#define BESIDE_MAX 2

static const char *const answer_names[] = {
	[ANSWER_DEFERRED] = "deferred",
	[ANSWER_DEFERRED_UPDATE] = "deferred-update",
	[ANSWER_EDITOR] = "callback", /* the word that the column knows */
	NULL,
};

static const struct row_field job_fields[] = {
#define JOB(type, name) ROW_FIELD(struct job, name),
#include "store/columns.def"
	ROW_END
};

void
job_init(struct job *job)
{
	*job = (struct job){ .page = 1, .held_by = JOB_HELD_NOWHERE };
}

void
job_release(struct job *job)
{
	if (job == NULL)
		return;
	row_release(job_fields, job);
	free(job->body);
	job_init(job);
}

static void
job_read_row(struct stmt *s, struct job *job)
{
	int body = row_column(s, "body");

	row_read(s, job_fields, job);
	job->kind = job_kind_find(db_column_text(s, row_column(s, "kind")));
	job->lost = strcmp(db_column_text(s, row_column(s, "state")), "lost") ==
	    0;
	job->answer = (enum job_answer)db_column_word(s,
	    row_column(s, "answer"), answer_names);
	if (!db_column_is_null(s, body))
		job->body = xstrdup(db_column_text(s, body));
}

/* Length of the queue, -1 on error.  Counting costs by the length, so it is
 * done once for a group of insertions: nobody else changes it meanwhile. */
static int64_t
unfinished(struct db *db, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_UNFINISHED);
	int64_t *note = db_note(db);

	if (*note < 0 && db_step(db, s, err) == 1)
		*note = db_column_int(s, 0);
	return *note;
}

/* Number of a user's concurrent jobs, which wait for none; -1 on error. */
static int64_t
count_beside(struct db *db, int64_t user_id, struct err *err)
{
	return db_number(db, STATEMENT_JOB_BESIDE,
	    DB_VALUES(BIND(":user_id", user_id)), err);
}

/* Does it run code, so that the workspace can be read meanwhile? */
static bool
is_run(enum job_kind kind)
{
	return kind == JOB_PY || kind == JOB_MESSAGE_RUN;
}

/* The user has an unfinished job of another kind: must this one wait for it?
 * -1: that is not known. */
static int
waits_for(struct db *db, struct job *job, enum job_kind other, struct err *err)
{
	enum command_needs needs = commands[job->kind].needs;
	int64_t count;

	if (needs == COMMAND_NEEDS_NOTHING)
		return 0;
	if (needs != COMMAND_NEEDS_LOOK || !is_run(other))
		return 1;
	count = count_beside(db, job->user_id, err);
	job->beside = count >= 0 && count < BESIDE_MAX;
	return count < 0 ? -1 : !job->beside;
}

/* Do the limits that an operator has set, beside those that all have, let the
 * job in?  runs: the user has a job that is not over. */
static enum job_insert_result
check_limits(struct db *db, const struct job *job,
    const struct job_limits *limits, bool runs, struct err *err)
{
	const struct db_value guild = BIND(":guild_id", job->guild_id);
	const struct db_value since = BIND(":since_ms",
	    job->received_ms - RATE_WINDOW_MS);
	const struct {
		enum statement which;
		int64_t most; /* 0: no limit */
		enum job_insert_result result;
		const struct db_value *values;
	} rules[] = {
		{ STATEMENT_JOB_GUILD_RATE, limits->guild_rate,
		    JOB_GUILD_TOO_MANY,
		    DB_VALUES(guild, since,
			BIND(":most", limits->guild_rate)) },
		{ STATEMENT_JOB_GUILD_OPEN, limits->guild_jobs,
		    JOB_GUILD_TOO_MANY, DB_VALUES(guild) },
		{ STATEMENT_JOB_SERVICE_RATE, limits->service_rate,
		    JOB_QUEUE_FULL,
		    DB_VALUES(since, BIND(":most", limits->service_rate)) },
	};
	int64_t count;

	if (limits->user_jobs > 0) {
		count = count_beside(db, job->user_id, err);
		if (count < 0)
			return JOB_INSERT_FAILED;
		if (count + runs >= limits->user_jobs)
			return JOB_RUNNING;
	}
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].most <= 0)
			continue;
		count = db_number(db, rules[i].which, rules[i].values, err);
		if (count < 0)
			return JOB_INSERT_FAILED;
		if (count >= rules[i].most)
			return rules[i].result;
	}
	return JOB_INSERTED;
}

/* Check a new job: its faults in the order in which they are reported. */
static enum job_insert_result
insert_check(struct db *db, struct job *job, const struct job_limits *limits,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_CHECK,
	    DB_VALUES(BIND(":interaction_id", job->interaction_id),
		BIND(":user_id", job->user_id),
		BIND(":since_ms", job->received_ms - RATE_WINDOW_MS),
		BIND(":rate", limits->user_rate)));
	int64_t count = unfinished(db, err);
	bool runs;
	int waits = 0;

	if (count < 0)
		return JOB_INSERT_FAILED;
	/* The wait for the other writers is over by now. */
	if (limits->until_ms != 0 && clock_wall_ms() > limits->until_ms)
		return JOB_LATE;
	if (db_step(db, s, err) < 0)
		return JOB_INSERT_FAILED;
	if (db_column_int(s, 0) != 0)
		return JOB_REPEATED;
	runs = !db_column_is_null(s, 1);
	if (runs)
		waits = waits_for(db, job, job_kind_find(db_column_text(s, 1)),
		    err);
	if (waits != 0)
		return waits < 0 ? JOB_INSERT_FAILED : JOB_RUNNING;
	if (db_column_int(s, 2) >= limits->user_rate)
		return JOB_TOO_MANY;
	if (count >= limits->queue_max)
		return JOB_QUEUE_FULL;
	return check_limits(db, job, limits, runs, err);
}

static int
insert_row(struct db *db, struct job *job, struct err *err)
{
	bool alone = commands[job->kind].needs != COMMAND_NEEDS_NOTHING &&
	    !job->beside;
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_INSERT,
	    DB_VALUES(BIND(":kind", commands[job->kind].name),
		BIND(":alone", alone),
		BIND(":answer", answer_names[job->answer])));

	if (row_id_make(db, "jobs", job->user_id, &job->id, err) != 0)
		return -1;
	row_bind(s, job_fields, job);
	if (db_run(db, s, err) < 0)
		return -1;
	++*db_note(db);
	return 0;
}

enum job_insert_result
job_insert(struct db *db, struct job *job, const struct job_limits *limits,
    struct err *err)
{
	enum job_insert_result result;

	if (db_begin(db, err) != 0)
		return JOB_INSERT_FAILED;
	/* There is one writer at a time, so what was checked holds. */
	result = insert_check(db, job, limits, err);
	if (result == JOB_INSERTED && insert_row(db, job, err) != 0)
		result = JOB_INSERT_FAILED;
	return db_end(db, (int)result, err) < 0 ? JOB_INSERT_FAILED : result;
}

int
job_owner(struct db *db, int64_t id, int64_t *user_id, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_OWNER,
	    DB_VALUES(BIND(":id", id)));
	int result = db_first(db, s, err);

	if (result == 0)
		*user_id = db_column_int(s, 0);
	return result;
}

int
job_alone(struct db *db, int64_t user_id, struct job *job, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_ALONE,
	    DB_VALUES(BIND(":user_id", user_id)));
	int result = db_first(db, s, err);

	if (result == 0)
		row_read(s, job_fields, job);
	return result;
}

int
job_peek(struct db *db, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_PEEK);

	if (db_step(db, s, err) < 0)
		return -1;
	return db_column_int(s, 0) != 0 ? 0 : 1;
}

/* Read the one row of s into job, and step s to its end: only then is a
 * RETURNING statement committed.  1: there is no row. */
static int
job_read(struct db *db, struct stmt *s, struct job *job, struct err *err)
{
	int result = db_first(db, s, err);

	if (result != 0)
		return result;
	job_read_row(s, job);
	if (db_step(db, s, err) == 0)
		return 0;
	job_release(job);
	return -1;
}

/* An empty queue is found without the lock that fronts wait for. */
int
job_claim(struct db *db, int64_t slot, struct job *job, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_CLAIM,
	    DB_VALUES(BIND(":slot", slot), BIND(":now_ms", clock_wall_ms())));
	int result = job_peek(db, err);

	job_init(job);
	if (result != 0)
		return result;
	db_lasting(db, false); /* queued again after a power cut: as well */
	result = job_read(db, s, job, err);
	db_lasting(db, true);
	return result;
}

/* The result of a change of one job's state, whose error names the job. */
static int
changed(int result, int64_t id, struct err *err)
{
	return result < 0 ? err_wrap(err, "job %" PRId64, id) : result;
}

int
job_start(struct db *db, int64_t id, int64_t slot, struct err *err)
{
	return changed(db_change_one(db, STATEMENT_JOB_START,
			   DB_VALUES(BIND(":id", id), BIND(":slot", slot),
			       BIND(":now_ms", clock_wall_ms())),
			   err),
	    id, err);
}

int
job_finish(struct db *db, int64_t id, int64_t slot, const char *body,
    const char *outcome, int64_t cpu_ms, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_FINISH,
	    DB_VALUES(BIND(":id", id), BIND(":slot", slot),
		BIND(":now_ms", clock_wall_ms()), BIND(":body", body),
		BIND(":outcome", outcome)));

	if (cpu_ms >= 0) /* else NULL */
		db_bind_int(s, ":cpu_ms", cpu_ms);
	return changed(db_one(db_run_quick(db, s, err)), id, err);
}

int
job_narrow(struct db *db, int64_t id, const char *body, struct err *err)
{
	return db_change_any(db, STATEMENT_JOB_NARROW,
	    DB_VALUES(BIND(":id", id), BIND(":body", body)), err);
}

int
job_delivered(struct db *db, int64_t id, struct err *err)
{
	/* After a power cut the same is reported again. */
	return changed(db_change_quick(db, STATEMENT_JOB_DELIVERED,
			   DB_VALUES(BIND(":id", id),
			       BIND(":now_ms", clock_wall_ms())),
			   err),
	    id, err);
}

int
job_undeliverable(struct db *db, int64_t id, const char *why, struct err *err)
{
	return changed(db_change_one(db, STATEMENT_JOB_UNDELIVERABLE,
			   DB_VALUES(BIND(":id", id), BIND(":why", why),
			       BIND(":now_ms", clock_wall_ms())),
			   err),
	    id, err);
}

int
job_next_untold(struct db *db, int64_t slot, int64_t after, struct job *job,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_NEXT_UNTOLD,
	    DB_VALUES(BIND(":slot", slot), BIND(":after", after)));

	job_init(job);
	return job_read(db, s, job, err);
}

/* ---- jobs of workers that have died ---- */

int
job_recover(struct db *db, int64_t slot, struct err *err)
{
	static const enum statement halves[] = { STATEMENT_JOB_REQUEUE,
		STATEMENT_JOB_LOSE };
	int changes = db_begin(db, err);
	int count = 0;

	for (int i = 0; i < 2 && changes >= 0; i++) {
		changes = db_change(db, halves[i],
		    DB_VALUES(BIND(":slot", slot)), err);
		count += changes;
	}
	return db_end(db, changes < 0 ? -1 : 0, err) == 0 ? count : -1;
}

int
job_slots(struct db *db, int64_t *slots, int cap, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_SLOTS);
	int count = 0;
	int result = 1;

	while (count < cap && (result = db_step(db, s, err)) == 1)
		slots[count++] = db_column_int(s, 0);
	return result < 0 ? -1 : count;
}

/* ---- numbers of jobs ---- */

int
job_count(struct db *db, struct job_counts *counts, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_COUNT,
	    DB_VALUES(BIND(":now_ms", clock_wall_ms())));

	if (db_step(db, s, err) < 0)
		return -1;
	*counts = (struct job_counts){
		.queued = db_column_int(s, 0),
		.running = db_column_int(s, 1),
		.untold = db_column_int(s, 2),
		.oldest_ms = db_column_int(s, 3),
	};
	return 0;
}

int
job_count_kinds(struct db *db, int64_t counts[JOB_UNKNOWN + 1][JOB_STATES],
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_COUNT_KINDS);
	int result;

	memset(counts, 0, (JOB_UNKNOWN + 1) * sizeof(counts[0]));
	while ((result = db_step(db, s, err)) == 1)
		counts[job_kind_find(db_column_text(s, 0))][db_column_word(s, 1,
		    job_state_words)] += db_column_int(s, 2);
	return result;
}
