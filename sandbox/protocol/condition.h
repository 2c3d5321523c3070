/* SPDX-License-Identifier: MIT */
#ifndef CONDITION_H
#define CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/lease.h"

struct buf;
struct config;
struct err;

/* How the programs of this host are (handover.c). */

/* ---- whether the workers move ---- */

/*
 * Each worker notes in a file that all of them map, STATE/worker/pulse-VERSION,
 * who it is and by when it will have come here again.  A worker that was
 * stopped, or hangs, lets that time pass.
 */
#define PULSE_SLOTS 256
/* A worker needs at most so long between two notes in a job.  Its waits on a
 * cell are shorter. */
#define PULSE_BUSY_MS 60000
/* A busy machine needs so much more than the time for which a worker waits. */
#define PULSE_MORE_MS 3000

struct pulse;

/* il-worker; NULL: it cannot be had, and err says why. */
struct pulse *pulse_open(const struct config *config, struct err *err);
/* The worker of this slot comes here again within so long, or, while it rests,
 * whenever it is woken.  NULL: nothing is noted. */
void pulse_beat(struct pulse *pulse, int64_t slot, int64_t within_ms,
    bool rests);
/* The worker ends, and its slot is free. */
void pulse_close(struct pulse *pulse, int64_t slot);

struct pulse_count {
	int alive;	  /* workers that are there, */
	int moving;	  /* and come when they said */
	int64_t heard_ms; /* a worker that rests knows what it was told before
			   * this time, monotonic; INT64_MAX: one is busy, and
			   * looks for jobs when it is done */
};

/* still: NULL, or where the numbers of the processes that do not move are
 * appended, each after a blank.  Where no worker has ever been there are
 * none. */
void pulse_look(const struct config *config, struct pulse_count *count,
    struct buf *still);

/* ---- condition ---- */

/*
 * Can a command be answered now?  The one answer of this host, wherever that is
 * shown.  The caller gathers the facts as far as its rights go, and judges them
 * here.
 */
enum condition {
	CONDITION_WELL,
	CONDITION_FRONT,    /* il-fcgi is away, or hangs */
	CONDITION_API,	    /* il-api is */
	CONDITION_DATABASE, /* it does not answer */
	CONDITION_BROKER,
	CONDITION_ENGINE,  /* the Docker engine does not answer */
	CONDITION_STARTS,  /* it answers, and starts no container */
	CONDITION_IMAGE,   /* it is missing */
	CONDITION_WORKERS, /* none is there */
	CONDITION_STILL,   /* and none of them moves */
	CONDITION_QUEUE,   /* a command waits for too long */
	CONDITION_DISK,	   /* too full to be written to */
	CONDITIONS,
};

/* This starts all programs. */
#define CONDITION_START_ALL "make run, or systemctl start inline.target"
/* A command that no worker has is old by then. */
#define CONDITION_QUEUE_MS 10000
/* A start takes too long by then, as a busy host needs some seconds for it.
 * With a shorter IL_TUNE_START_SECONDS it has failed before, which is found,
 * too. */
#define CONDITION_START_MS 30000

struct condition_facts {
	bool front;
	bool api;
	bool database;
	int64_t oldest_ms; /* age of the oldest queued command */
	bool broker;	   /* it answers; else its status is empty */
	struct lease_status status;
	struct pulse_count workers;
	char still[128]; /* processes of workers that do not move */
	int64_t quota;	 /* IL_QUOTA */
};

/* Facts that every program can see: the workers, and the settings.  All other
 * facts are good, and for the caller to correct. */
void condition_look(struct condition_facts *facts, const struct config *config);

struct condition_verdict {
	enum condition what;
	char text[400]; /* the fault; "": all is well */
	char mend[200]; /* a command, or what to do first */
};

/* Finds the first cause: without the broker nobody knows of the engine.
 * Pure. */
void condition_judge(const struct condition_facts *facts,
    struct condition_verdict *verdict);

/* ---- the report of il-fcgi ---- */

/*
 * il-api has no right on the database, so il-fcgi tells it how many jobs there
 * are: STATE/front/jobs, which it replaces whole every CONDITION_TELL_MS.
 */
#define CONDITION_TELL_MS 5000
/* An older report is of a process that is gone. */
#define CONDITION_OLD_MS 20000

struct condition_jobs {
	int64_t written_ms; /* wall clock */
	int64_t database;   /* 1: it opened and answered; else the rest is 0 */
	int64_t queued;	    /* as in struct job_counts */
	int64_t running;
	int64_t untold;
	int64_t oldest_ms;
};

int condition_tell_jobs(const struct config *config,
    const struct condition_jobs *jobs, struct err *err);
/* Returns the age of what was told; -1: nothing was, or it makes no sense, and
 * *jobs is empty. */
int64_t condition_read_jobs(const struct config *config,
    struct condition_jobs *jobs);

#endif
