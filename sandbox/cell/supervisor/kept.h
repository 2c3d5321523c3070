/* SPDX-License-Identifier: MIT */
#ifndef KEPT_H
#define KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/frame.h"

struct supervisor;

/*
 * A run's process that is kept for the next run of its owner's, with all that
 * is in its memory.  Only without jails, where we are PID 1.
 *
 * When its code is over it says so (struct kept_word), and waits.  It is
 * stopped then, with all of its threads, and every other process is ended: so
 * nothing of a user's runs between two runs.  One that is continued by somebody
 * else (a timer of its own can do that) is killed, with all that it has made
 * since.  What it says can be forged by the code in it, which gains nothing by
 * that: it ends its own run.
 *
 * The next request is read by a clone, as ever.  If it is a run, its source and
 * its standard streams are handed over, and the clone ends.
 */

struct kept_word {
	uint64_t status; /* of its exit, had it been one */
	uint64_t names;	 /* variables */
};

/* The process of the run says that it rests: stop it, and end all others.
 * False: nothing is left, as it could not be stopped, or has said nonsense. */
bool kept_take(struct supervisor *k);

/* The clone has told its plan.  Where there is a kept process the run is that
 * one's from here on; else the clone goes on by itself. */
void kept_begin(struct supervisor *k);

/* End the kept process, if there is one; why: 0 if nobody need be told. */
void kept_end(struct supervisor *k, enum kept_end why);

/* End all processes but the kept one, and reap them. */
void kept_end_others(struct supervisor *k);

/* A clone has failed, as errno says.  True: kept or background processes may
 * have taken its room, and have been ended for that.  Try again. */
bool kept_make_room(struct supervisor *k);

/* children_do(), while a kept process stays at rest, or is ended. */
int kept_do(struct supervisor *k);

/* base_wait(), while a kept process stays at rest, or is ended. */
void kept_wait(struct supervisor *k, int above, short events_above, int fd,
    short events);

/* Say in a result what became of it. */
void kept_tell(struct supervisor *k);

/*
 * Processes that a command of a session has left in the background: they live
 * as long as the session.  No other cell has such: in that of a session we are
 * PID 1, and the lease is the session.
 */

/* Do they stay in this cell, after the run of state->plan? */
bool background_stays(const struct supervisor *k);

/* The command is over, by itself or by its limits (cut).  In the first case its
 * processes stay, in the second they end; processes that earlier commands have
 * left stay in both. */
void background_settle(struct supervisor *k, bool cut);

/* Its output has been passed on.  A process of ours reads its pipes from here
 * on, for nobody, so that those it has left can write to them for good. */
void background_release(struct supervisor *k);

#endif
