/* SPDX-License-Identifier: MIT */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H

#include <stddef.h>
#include <stdint.h>

struct supervisor;

/*
 * In the process that will be a run: a clone, without supervisor.state.
 */

/* Wait for the lease and read its request; ends the process when there will be
 * none.  FAST: the process has become the run.  RUN: the interpreter must go on
 * with the packets that were received.  The connection to the broker is closed
 * then, and the lease is the caller's. */
int run_process_start(struct supervisor *k);

/* Append a listing of one of SUPERVISOR_FOLDERS, below path, to k->file.
 * Returns the length of its notes (listing_write()).  Ends the process when
 * that fails. */
uint64_t run_process_list(const struct supervisor *k, uint64_t folder,
    const char *path, size_t path_len);

/* Become the run that k->plan, merge, limits and cwd describe.  Ends the
 * process when that fails, with the reason on standard error; or when a kept
 * process has become the run, whose task is in k->brief. */
void run_process_become(struct supervisor *k);

/* In a run that is to be kept, when its code is over: say so, and wait for the
 * next run.  Its standard streams are in their places then.  Returns the
 * descriptor of its task, or -1: no run will come. */
int run_process_rest(struct supervisor *k, uint64_t status, uint64_t names);

/*
 * In the supervisor: the beginning and the end of a run's process, and of its
 * jail where there are jails.
 */

/* Make a jail and the process of the next run.  DONE in the supervisor; FAILED:
 * there is no process.  In the process the result is run_process_start()'s, or
 * without jails AHEAD: the interpreter rehearses, and calls that itself.  A
 * lease that goes on, state->watch.lease, is the process's from the start. */
int enclose_jail(struct supervisor *k);

/* Receive a packet of the run's process into state->said, with a NUL behind it;
 * 0 when the process has ended.  Ends the cell when the broker is gone. */
size_t enclose_hear(struct supervisor *k);

/* Without a jail, open the folders when the request is there.  They may have
 * been mounted after the process was made (in a standby cell). */
void enclose_find_folders(struct supervisor *k);

/* End all of the run but the lease.  Harmless when it is called again. */
void enclose_end(struct supervisor *k);

#endif
