#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "job_row.h"

struct db;
struct err;

/*
 * The life of a job (job_row.h): one thing that a person asked for and that a
 * worker answers.
 *
 *	queued → claimed → started → finished → delivered
 *	   │        └──► queued (its worker died before it started)
 *	   │                  └──► lost (its worker died during it), then
 *	   │                       finished with "interrupted" and delivered
 *	   └──► undeliverable (the token is older than 14 min 30 s, or Discord
 *	        says for good that there is nobody to tell)
 *
 * At most one execution, at least one report.  Every change is compare-and-set;
 * a function that changes state returns 1 when the job was no longer in the
 * state that it expects, and has changed nothing then.
 */

enum job_insert_result {
	JOB_INSERTED,
	JOB_REPEATED, /* the interaction id is known: refuse it */
	JOB_RUNNING,  /* this user has an unfinished job */
	JOB_TOO_MANY, /* more than rate commands of this user in 60 s */
	JOB_QUEUE_FULL,
	JOB_LATE,	   /* it is past limits.until_ms: nobody waits for it */
	JOB_INSERT_FAILED, /* err says why: our fault */
};

struct job_limits {
	int64_t queue_max;
	int64_t user_rate;
	int64_t until_ms; /* wall clock: not inserted after it; 0: always */
};

/* il-fcgi: commit a job as queued (durable when it returns).  One transaction;
 * job->id is set. */
enum job_insert_result job_insert(struct db *db, struct job *job,
    const struct job_limits *limits, struct err *err);

/* Is a job queued?  1: none is.  Costs no lock. */
int job_peek(struct db *db, struct err *err);
/* Worker `slot` takes the oldest queued job.  1: there is none.  The job is
 * initialised here; release it when the result is 0. */
int job_claim(struct db *db, int64_t slot, struct job *job, struct err *err);
/* claimed → started: from here on it is never run again. */
int job_start(struct db *db, int64_t id, int64_t slot, struct err *err);
/* claimed, started or lost → finished, with the message that tells about it. */
int job_finish(struct db *db, int64_t id, int64_t slot, const char *body,
    const char *outcome, struct err *err);
/* finished → delivered; claimed, started, finished or lost → undeliverable.
 * The token is forgotten, and what was asked and answered too. */
int job_delivered(struct db *db, int64_t id, struct err *err);
int job_undeliverable(struct db *db, int64_t id, const char *why,
    struct err *err);

/* What a dead holder of `slot` left: claimed → queued; started → lost.  Returns
 * how many, -1 on error. */
int job_recover(struct db *db, int64_t slot, struct err *err);
/* Jobs (lost or finished) that slot left and that must still be told: gives the
 * oldest of `slot` (its dead predecessor's) with an id over `after`, unchanged:
 * it is there until it was finished and told.  1: none. */
int job_next_untold(struct db *db, int64_t slot, int64_t after, struct job *job,
    struct err *err);
/* Slots that hold unfinished jobs: fills at most cap, returns how many. */
int job_slots(struct db *db, int64_t *slots, int cap, struct err *err);

struct job_counts {
	int64_t queued;
	int64_t running;   /* claimed or started */
	int64_t untold;	   /* finished or lost, not delivered */
	int64_t oldest_ms; /* age of the oldest queued job, 0: none */
};
int job_count(struct db *db, struct job_counts *counts, struct err *err);

/* Delete delivered and undeliverable jobs older than the age; returns how many
 * (at most `most`). */
int job_prune(struct db *db, int64_t older_than_ms, int most, struct err *err);

#endif
