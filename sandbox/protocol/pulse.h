/* SPDX-License-Identifier: MIT */
#ifndef PULSE_H
#define PULSE_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct config;
struct err;

/*
 * Whether the workers move.  Each one notes in a file that all of them map,
 * STATE/worker/pulse-VERSION, who it is and by when it will have come here
 * again.  A worker that is killed is not there any more; one that was stopped,
 * or hangs, lets that time pass.  Nobody has to ask a worker for it.
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

#endif
