#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stddef.h>
#include <stdint.h>

#include "shared.h"

/*
 * The supervisor of a cell: makes the process of the next run, in a jail where
 * there are jails, gives the lease to it, holds the run to its limits and says
 * how it ended.
 *
 * It is called by the interpreter that all runs are clones of (supervisor.py in
 * sandbox/cell/python), as C, because whatever the interpreter itself would do
 * here, the clone and its parent would pay for again with a copy of each page
 * that is written to.  It calls nothing but the C library of whatever image it
 * is loaded in.
 *
 * A run's process is there before its lease.  It takes the lease, reads the
 * request and becomes the run (api.py); what the supervisor must know of that
 * is told in a few numbers, struct supervisor_plan.  No byte of a client's is
 * looked at here: output passes through memory that no clone gets, standard
 * input goes from file to pipe within the kernel, and files that a run leaves
 * are sent by a child.
 */

/* sizeof(struct supervisor): a caller with another one is of another version.
 */
size_t supervisor_size(void);

/* In a new user namespace: be SUPERVISOR_ID.  DONE or FAILED. */
int supervisor_map_user(struct supervisor *k);

/* Begin, in the process that is to be the supervisor.  For jails it keeps one
 * capability, over what it has made itself; without them it must be PID 1.
 * DONE or FAILED. */
int supervisor_init(struct supervisor *k);

/* Make a jail and the process of its next run.  DONE in the supervisor; FAILED:
 * there is none.  In that process as supervisor_take(); without jails AHEAD:
 * the interpreter rehearses, and calls that itself. */
int supervisor_enclose(struct supervisor *k);

/* In that process: returns when the lease is there and the beginning of its
 * request, and ends the process when there will be none: FAST, or RUN: the
 * interpreter must go on with what was received.  The connection to the broker
 * is closed then, and the lease is the caller's. */
int supervisor_take(struct supervisor *k);

/* There, with RUN: become the run that k->plan, merge, limits and cwd describe.
 */
void supervisor_become(struct supervisor *k);

/* And before that, where there are two looks: see run_process_look(). */
uint64_t supervisor_look(const struct supervisor *k, uint64_t folder,
    const char *path, size_t path_len);

/* Serve leases.  With jails the first is there, and IDLE is said when the next
 * one is; without them IDLE comes first.  Ends the process when the broker is
 * gone.  Returns FAILED when no process can be made any more; in a child as
 * supervisor_enclose(), or HARVEST, or TIDY. */
int supervisor_keep(struct supervisor *k);

/* Nothing of the jail is left. */
void supervisor_release(struct supervisor *k);

/* Give up all capabilities, and all system calls that the filter refuses; with
 * goes_first, be the one that goes when memory runs out.  DONE or FAILED. */
int supervisor_surrender(struct supervisor *k, int goes_first);

#endif
