/* SPDX-License-Identifier: MIT */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/counters.h"
#include "store/commands.h"
#include "statements.h"

struct db;
struct err;

/*
 * A job and its life: one thing that a person asked for and that a
 * worker answers.
 *
 *	queued → claimed → started → finished → delivered
 *	   │        └──► queued (its worker died before it started)
 *	   │                  └──► lost (its worker died during it), then
 *	   │                       finished with "interrupted" and delivered
 *	   └──► undeliverable (the token is older than 14 min 30 s, or Discord
 *	        says for good that there is nobody to tell)
 *
 * At most one execution, at least one report.  Every change is compare-and-set:
 * 1 says that the job was not in the expected state, and nothing has changed.
 */

/* Zero, but page 1 and held by nobody. */
void job_init(struct job *job);
void job_release(struct job *job);

enum job_insert_result {
	JOB_INSERTED,
	JOB_REPEATED, /* the interaction id is known: it makes no second job */
	JOB_RUNNING,  /* this user has an unfinished job, and it is not one that
		       * only looks, beside a run, with few such others */
	JOB_TOO_MANY, /* more than rate commands of this user in 60 s */
	JOB_GUILD_TOO_MANY, /* the same of its server, or too many at once */
	JOB_QUEUE_FULL,	    /* or more than service_rate of all in 60 s */
	JOB_LATE,	   /* it is past limits.until_ms: nobody waits for it */
	JOB_INSERT_FAILED, /* err says why: our fault */
};

struct job_limits {
	int64_t queue_max, user_rate;
	/* of jobs that are not over, and in 60 s; 0: no more than that */
	int64_t user_jobs, guild_jobs, guild_rate, service_rate;
	int64_t until_ms; /* wall clock: not inserted after it; 0: always */
};

/* il-fcgi: commit a job as queued (durable when it returns).  One transaction;
 * id is set. */
enum job_insert_result job_insert(struct db *db, struct job *job,
    const struct job_limits *limits, struct err *err);
/* il-fcgi: whose is this job?  1: nobody's, or it is over. */
int job_owner(struct db *db, int64_t id, int64_t *user_id, struct err *err);
/* il-fcgi: what keeps this user waiting: id, received_ms.  1: none. */
int job_alone(struct db *db, int64_t user_id, struct job *job, struct err *err);

/* Is a job queued?  1: none is.  Costs no lock. */
int job_peek(struct db *db, struct err *err);
/* Worker `slot` gets the oldest queued job, to be released.  1: none. */
int job_claim(struct db *db, int64_t slot, struct job *job, struct err *err);
/* claimed → started: from here on it is never run again. */
int job_start(struct db *db, int64_t id, int64_t slot, struct err *err);
/* claimed, started or lost → finished, with the message that tells about it.
 * It survives a power cut after db_flush().  cpu_ms: of its code; or -1. */
int job_finish(struct db *db, int64_t id, int64_t slot, const char *body,
    const char *outcome, int64_t cpu_ms, struct err *err);
/* A finished job is told by this message instead, to its owner alone. */
int job_narrow(struct db *db, int64_t id, const char *body, struct err *err);
/* finished → delivered; claimed, started, finished or lost → undeliverable.
 * The token is forgotten, and what was asked and answered too. */
int job_delivered(struct db *db, int64_t id, struct err *err);
int job_undeliverable(struct db *db, int64_t id, const char *why,
    struct err *err);

/* Recover the jobs of a worker that died: claimed → queued; started → lost.
 * Returns how many, or -1. */
int job_recover(struct db *db, int64_t slot, struct err *err);
/* `slot`'s oldest lost or finished job with an id over `after`.  1: none. */
int job_next_untold(struct db *db, int64_t slot, int64_t after, struct job *job,
    struct err *err);
/* Slots with unfinished jobs: at most cap; how many. */
int job_slots(struct db *db, int64_t *slots, int cap, struct err *err);

struct job_counts {
	int64_t queued;
	int64_t running;   /* claimed or started */
	int64_t untold;	   /* finished or lost, not delivered */
	int64_t oldest_ms; /* age of the oldest queued job, 0: none */
};
int job_count(struct db *db, struct job_counts *counts, struct err *err);
/* By kind and unfinished state. */
int job_count_kinds(struct db *db, int64_t counts[JOB_UNKNOWN + 1][JOB_STATES],
    struct err *err);

/* ---- views ---- */

/* Texts of a run. */
struct view_texts {
#define VIEW_TEXT(type, name) type name;
#include "store/columns.def"
};

/*
 * Object that a button or a modal refers to.  Discord carries "<action>:<view
 * id>" and nothing else.  Owner and subject stand here, so a button works after
 * a restart and cannot be forged into something else.
 */
struct view {
#define VIEW(type, name, ...) type name __VA_ARGS__;
#include "store/columns.def"
	enum job_kind kind; /* the command it is of; JOB_UNKNOWN: a newer one */
	/* borrowed, for view_insert() and view_set(); NULL: none */
	const struct view_texts *texts;
};

/* Bytes of output and of files at most: who inserts cuts them. */
#define VIEW_TEXT_MAX 65536
#define VIEW_FILES_MAX 25

/* Heap; all NULL, before and after. */
void view_texts_release(struct view_texts *texts);
#define auto_view_texts __attribute__((cleanup(view_texts_release)))

/* Sets view->id.  The trigger views_bounded of sql/ deletes what is
 * beyond the owner's newest 500 rows and 4 MiB. */
int view_insert(struct db *db, struct view *view, struct err *err);
/* texts: for workers; "" where there are none; release them when the result is
 * 0.  NULL: without them.  1: there is no such view (any more). */
int view_find(struct db *db, int64_t id, struct view *view,
    struct view_texts *texts, struct err *err);
/* 1: there is no such view. */
int view_set_page(struct db *db, int64_t id, int64_t page, struct err *err);

/* Number of a user's newest `most` views that were made after since_ms; -1:
 * error. */
int64_t view_count(struct db *db, int64_t user_id, int64_t since_ms,
    int64_t most, struct err *err);

/* ---- for workers ---- */

/* STATEMENT_VIEW_SET_PROGRAM: keep text, input, version and timeit.
 * STATEMENT_VIEW_SET_RUN, it was run again: keep version, input, output, files
 * and package.  1: there is no such view. */
int view_set(struct db *db, enum statement which, const struct view *view,
    struct err *err);
/* Make a copy that everybody may see, without output.  1: there is no such
 * view, or it was shared less than ten seconds ago. */
int view_share(struct db *db, const struct view *view, int64_t *copy,
    struct err *err);
/* 1: this user has no such view. */
int view_remove(struct db *db, int64_t id, int64_t user_id, struct err *err);
/* All of a user's: how many they were, or -1. */
int view_forget(struct db *db, int64_t user_id, struct err *err);

/* ---- ids of rows ---- */

/*
 * Ids of jobs and views.  An id says when its row was made and in which slot
 * its user is, so that any node knows whose an id is, and it is unique over all
 * nodes:
 *
 *	milliseconds since 2015 << 22 | slot << 12 | counter
 *
 * In each table ids grow, whatever the clock does, and none is used again.  Ids
 * below ROW_ID_FIRST are of an older version and say nothing.
 */
#define ROW_ID_FIRST (INT64_C(1) << 40)
/* The last one that a clock gives, with 50 days of ids behind it.  A row that
 * comes from elsewhere has none above it, or none would be left for others. */
#define ROW_ID_LAST ((((INT64_C(1) << 41) - (INT64_C(1) << 32) + 1) << 22) - 1)

/* The slot of a row's user; -1: the id does not say it. */
int row_id_slot(int64_t id);

/* The next id of a table whose newest id is given (0: none), by the wall
 * clock, for a user in this slot. */
int64_t row_id_next(int64_t newest, int64_t now_ms, int slot);

/* The same for a row that a transaction inserts into this table. */
int row_id_make(struct db *db, const char *table, int64_t user_id, int64_t *id,
    struct err *err);

#endif
