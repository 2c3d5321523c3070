/* SPDX-License-Identifier: MIT */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/counters.h"
#include "store/commands.h"

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

#endif
