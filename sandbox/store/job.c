/* SPDX-License-Identifier: MIT */
#include "store/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/row.h"

#define RATE_WINDOW_MS 60000

static const char *const answer_names[] = {
	[ANSWER_DEFERRED] = "deferred",
	[ANSWER_DEFERRED_UPDATE] = "deferred-update",
	[ANSWER_EDITOR] = "callback", /* the word that the column knows */
	NULL,
};

/* ---- ids of rows ---- */

#define EPOCH_MS INT64_C(1420070400000) /* 2015, as of Discord's ids */
#define TIME_SHIFT 22
#define SLOT_SHIFT 12
#define COUNTER_MAX ((INT64_C(1) << SLOT_SHIFT) - 1)
#define REST_MASK ((INT64_C(1) << TIME_SHIFT) - 1)
/* A clock that is outside of these, in milliseconds since 2015, is no clock. */
#define TIME_FIRST (ROW_ID_FIRST >> TIME_SHIFT)
#define TIME_LAST (ROW_ID_LAST >> TIME_SHIFT)

_Static_assert(SLOTS == 1 << (TIME_SHIFT - SLOT_SHIFT), "a slot has its bits");

int
row_id_slot(int64_t id)
{
	return id < ROW_ID_FIRST ? -1 : (int)((id & REST_MASK) >> SLOT_SHIFT);
}

int64_t
row_id_next(int64_t newest, int64_t now_ms, int slot)
{
	int64_t ms = now_ms - EPOCH_MS;
	int64_t own = (int64_t)slot << SLOT_SHIFT;
	int64_t id;

	if (ms < TIME_FIRST || ms > TIME_LAST)
		ms = TIME_FIRST;
	id = ms << TIME_SHIFT | own;
	if (id > newest)
		return id;
	/* The clock stands or was set back: the first one above the newest. */
	id = (newest & ~REST_MASK) | own;
	if (id > newest)
		return id;
	return newest - id < COUNTER_MAX ? newest + 1 : id + REST_MASK + 1;
}

int
row_id_make(struct db *db, const char *table, int64_t user_id, int64_t *id,
    struct err *err)
{
	int64_t newest = db_number(db, STATEMENT_ROW_NEWEST,
	    DB_VALUES(BIND(":name", table)), err);

	if (newest < 0)
		return -1;
	*id = row_id_next(newest, clock_wall_ms(), slot_of(user_id));
	return 0;
}

/* ---- jobs ---- */

static const struct row_field job_fields[] = {
#define JOB(type, name) ROW_FIELD(struct job, name),
#include "store/columns.def"
	ROW_END
};

#define OF_LIMITS(member) ROW_FIELD(struct job_limits, member)

static const struct row_field limit_fields[] = { OF_LIMITS(queue_max),
	OF_LIMITS(user_rate), OF_LIMITS(user_jobs), OF_LIMITS(guild_rate),
	OF_LIMITS(guild_jobs), OF_LIMITS(service_rate), ROW_END };

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

/* Check a new job: its faults in the order in which they are reported. */
static enum job_insert_result
insert_check(struct db *db, const struct job *job,
    const struct job_limits *limits, bool *alone, struct err *err)
{
	enum command_needs needs = commands[job->kind].needs;
	int64_t queued = unfinished(db, err);
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_JOB_CHECK,
	    DB_VALUES(BIND(":queued", queued),
		BIND(":waits", needs != COMMAND_NEEDS_NOTHING),
		BIND(":looks", needs == COMMAND_NEEDS_LOOK),
		BIND(":since_ms", job->received_ms - RATE_WINDOW_MS)));

	/* The wait for the other writers is over by now. */
	if (queued >= 0 && limits->until_ms != 0 &&
	    clock_wall_ms() > limits->until_ms)
		return JOB_LATE;
	row_bind(s, job_fields, job);
	row_bind(s, limit_fields, limits);
	if (queued < 0 || db_step(db, s, err) < 0)
		return JOB_INSERT_FAILED;
	*alone = needs != COMMAND_NEEDS_NOTHING && db_column_int(s, 1) == 0;
	return (enum job_insert_result)db_column_int(s, 0);
}

static int
insert_row(struct db *db, struct job *job, bool alone, struct err *err)
{
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
	bool alone;

	if (db_begin(db, err) != 0)
		return JOB_INSERT_FAILED;
	/* There is one writer at a time, so what was checked holds. */
	result = insert_check(db, job, limits, &alone, err);
	if (result == JOB_INSERTED && insert_row(db, job, alone, err) != 0)
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
	return db_change(db, STATEMENT_JOB_RECOVER,
	    DB_VALUES(BIND(":slot", slot)), err);
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

/* ---- views ---- */

/* A second press within this time is the same share. */
#define SHARE_AGAIN_MS 10000

static const struct row_field view_fields[] = {
#define VIEW(type, name, ...) ROW_FIELD(struct view, name),
#include "store/columns.def"
	ROW_END
};
static const struct row_field view_text_fields[] = {
#define VIEW_TEXT(type, name) ROW_FIELD(struct view_texts, name),
#include "store/columns.def"
	ROW_END
};

void
view_texts_release(struct view_texts *texts)
{
	row_release(view_text_fields, texts);
	*texts = (struct view_texts){ 0 };
}

static void
bind_view(struct stmt *s, const struct view *view)
{
	static const struct view_texts none = { 0 };

	row_bind(s, view_fields, view);
	row_bind(s, view_text_fields,
	    view->texts != NULL ? view->texts : &none);
}

/* Run the insertion of a row of this user: how many there are, or -1.  A power
 * cut may undo it: a button does nothing then, at worst. */
static int
view_insert_row(struct db *db, struct stmt *s, int64_t user_id, int64_t *id,
    struct err *err)
{
	int changes = -1;

	db_lasting(db, false);
	if (db_begin(db, err) == 0) {
		if (row_id_make(db, "views", user_id, id, err) == 0) {
			db_bind_int(s, ":id", *id);
			changes = db_run(db, s, err);
		}
		if (db_end(db, changes < 0 ? -1 : 0, err) != 0)
			changes = -1;
	}
	db_lasting(db, true);
	return changes;
}

int
view_insert(struct db *db, struct view *view, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_VIEW_INSERT,
	    DB_VALUES(BIND(":kind", commands[view->kind].name),
		BIND(":created_ms", clock_wall_ms())));

	bind_view(s, view);
	return view_insert_row(db, s, view->user_id, &view->id, err) < 0 ? -1 :
									   0;
}

int
view_find(struct db *db, int64_t id, struct view *view,
    struct view_texts *texts, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db,
	    texts != NULL ? STATEMENT_VIEW_LOAD : STATEMENT_VIEW_FIND,
	    DB_VALUES(BIND(":id", id)));
	int result = db_first(db, s, err);

	if (result != 0)
		return result;
	*view = (struct view){
		.kind = job_kind_find(db_column_text(s, row_column(s, "kind")))
	};
	row_read(s, view_fields, view);
	if (texts != NULL)
		row_read(s, view_text_fields, texts);
	return 0;
}

int64_t
view_count(struct db *db, int64_t user_id, int64_t since_ms, int64_t most,
    struct err *err)
{
	return db_number(db, STATEMENT_VIEW_COUNT,
	    DB_VALUES(BIND(":user_id", user_id), BIND(":most", most),
		BIND(":since_ms", since_ms)),
	    err);
}

int
view_set_page(struct db *db, int64_t id, int64_t page, struct err *err)
{
	return db_change_quick(db, STATEMENT_VIEW_SET_PAGE,
	    DB_VALUES(BIND(":id", id), BIND(":page", page)), err);
}

int
view_set(struct db *db, enum statement which, const struct view *view,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);

	bind_view(s, view);
	return db_one(db_run_quick(db, s, err));
}

int
view_share(struct db *db, const struct view *view, int64_t *copy,
    struct err *err)
{
	int64_t now_ms = clock_wall_ms();
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_VIEW_SHARE,
	    DB_VALUES(BIND(":of", view->id), BIND(":created_ms", now_ms),
		BIND(":since_ms", now_ms - SHARE_AGAIN_MS)));

	return db_one(view_insert_row(db, s, view->user_id, copy, err));
}

int
view_remove(struct db *db, int64_t id, int64_t user_id, struct err *err)
{
	return db_change_quick(db, STATEMENT_VIEW_REMOVE,
	    DB_VALUES(BIND(":id", id), BIND(":user_id", user_id)), err);
}

int
view_forget(struct db *db, int64_t user_id, struct err *err)
{
	return db_change(db, STATEMENT_VIEW_FORGET,
	    DB_VALUES(BIND(":user_id", user_id)), err);
}
