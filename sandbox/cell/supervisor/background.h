/* SPDX-License-Identifier: MIT */
#ifndef BACKGROUND_H
#define BACKGROUND_H

#include <stdbool.h>

/*
 * Processes that a command of a session has left in the background: they live
 * as long as the session.  No other cell has such: in that of a session we are
 * PID 1, and the lease is the session.
 */
struct supervisor;

/* Do they stay in this cell, after the run of state->plan? */
bool background_stays(const struct supervisor *k);

/* Reap those that have ended. */
void background_reap(struct supervisor *k);

/* The command is over, by itself or by its limits (cut).  In the first case
 * what it has begun stays, in the second it ends; what earlier commands have
 * left stays in both. */
void background_settle(struct supervisor *k, bool cut);

/* Its output has been passed on.  A process of ours reads its pipes from here
 * on, for nobody, so that those it has left can write to them for good. */
void background_release(struct supervisor *k);

#endif
