/* SPDX-License-Identifier: MIT */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H

#include <stddef.h>
#include <stdint.h>

struct supervisor;

/*
 * In the process that will be a run: a clone, which has no supervisor.state.
 */

/* Returns when the lease is there and the beginning of its request, and ends
 * the process when there will be none: FAST when it has become the run, or RUN:
 * the interpreter must go on with what was received.  The connection to the
 * broker is closed then, and the lease is the caller's. */
int run_process_take(struct supervisor *k);

/* Note what is in one of SUPERVISOR_FOLDERS, below path, behind what is in
 * k->file: length of the notes, which are look_note()'s.  Ends the process when
 * that cannot be. */
uint64_t run_process_look(const struct supervisor *k, uint64_t folder,
    const char *path, size_t path_len);

/* Become the run that k->plan, merge, limits and cwd describe.  Ends the
 * process when that cannot be, and says why on standard error; or when a kept
 * process has become the run, which k->brief tells what to do. */
void run_process_become(struct supervisor *k);

/* In a run that is to be kept, when its code is over: say so, and wait for the
 * next one.  Its standard streams are in their places then; returns a
 * descriptor of what it is to do, or -1: nothing will come. */
int run_process_rest(struct supervisor *k, uint64_t status, uint64_t names);

/*
 * One process after another, each in a jail where there are jails: what must be
 * there before a run, and its end.
 */

/* Make a jail and the process of the next run.  DONE in the supervisor; FAILED:
 * there is none.  In that process the result is run_process_take()'s; without
 * jails it is AHEAD: the interpreter rehearses, and calls that itself.  A lease
 * that goes on, state->watch.lease, is the process's own from the start. */
int enclose_jail(struct supervisor *k);

/* Reads what the run's process says into state->said, with a NUL behind it; 0
 * when it has ended.  Ends the cell when the broker is gone. */
size_t enclose_hear(struct supervisor *k);

/* Without a jail, find where the folders are now that its request is there.
 * They may have been mounted since the process was made (a spare cell's). */
void enclose_find_folders(struct supervisor *k);

/* Nothing of the run is left, but the lease.  Harmless when it is called again.
 */
void enclose_end(struct supervisor *k);

#endif
