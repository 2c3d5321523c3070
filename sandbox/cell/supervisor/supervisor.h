/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdint.h>

#include "cell/supervisor/shared.h"

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
 *
 * The interpreter calls what is here, and in the process of a run the functions
 * of run_process.h.
 */

/* sizeof(struct supervisor): a caller with another one is of another version.
 */
extern const uint64_t supervisor_size;

/* In a new user namespace: be SUPERVISOR_ID.  DONE or FAILED. */
int supervisor_map_user(struct supervisor *k);

/* Begin, in the process that is to be the supervisor.  For jails it keeps one
 * capability, over what it has made itself; without them it must be PID 1.
 * DONE or FAILED. */
int supervisor_init(struct supervisor *k);

/* Serve leases.  With jails the first is there, and IDLE is said when the next
 * one is; without them IDLE comes first.  Ends the process when the broker is
 * gone.  Returns FAILED when no process can be made any more; in a child as
 * enclose_jail(), or HARVEST, or TIDY. */
int supervisor_keep(struct supervisor *k);

/* Give up all capabilities, and all system calls that the filter refuses; with
 * goes_first, be the one that goes when memory runs out.  DONE or FAILED. */
int supervisor_surrender(struct supervisor *k, int goes_first);

#endif
