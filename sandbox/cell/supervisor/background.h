/* SPDX-License-Identifier: MIT */
#ifndef BACKGROUND_H
#define BACKGROUND_H

#include <stdbool.h>

/*
 * What a command of a session has left in the background: it lives as long as
 * the session.  Only there, where we are PID 1 and the lease is the session.
 */
struct supervisor;

/* Does it stay in this cell, after the run of state->plan? */
bool background_stays(const struct supervisor *k);

/* Reap who has ended. */
void background_reap(struct supervisor *k);

/* The command is over, by itself or by its limits (cut): what it has begun
 * stays, or ends; what earlier ones have left stays. */
void background_settle(struct supervisor *k, bool cut);

/* Its output has been passed on.  Whoever of the others still has its pipes can
 * write to them for good: a process of ours reads them, for nobody. */
void background_release(struct supervisor *k);

#endif
