/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdint.h>

#include "cell/supervisor/shared.h"

/*
 * The supervisor of a cell: makes the process of the next run, in a jail where
 * there are jails, gives the lease to it, enforces the limits of the run and
 * reports how it ended.
 *
 * The interpreter that all runs are clones of calls it (supervisor.py in
 * sandbox/cell/python).  It is C because each page that the interpreter itself
 * would write to here is copied once more for the clone or its parent.  It
 * calls only the C library of the image that it is loaded in.
 *
 * A run's process is made before its lease comes.  It receives the lease, reads
 * the request and becomes the run (api.py).  It sends the supervisor a few
 * numbers about that, struct supervisor_plan.  The supervisor reads no byte of
 * a client's: output passes through memory that no clone gets, standard input
 * goes from file to pipe within the kernel, and a child sends the files that a
 * run leaves.
 *
 * The interpreter calls these functions, and in the process of a run those of
 * run_process.h.
 */

/* sizeof(struct supervisor): a caller of another version has another size. */
extern const uint64_t supervisor_size;

/* In a new user namespace: become SUPERVISOR_ID.  DONE or FAILED. */
int supervisor_map_user(struct supervisor *k);

/* Begin, in the process that will be the supervisor.  For jails it keeps one
 * capability, over its own namespaces; without them it must be PID 1.  DONE or
 * FAILED. */
int supervisor_init(struct supervisor *k);

/* Serve leases.  With jails the first process is there, and IDLE is sent when
 * the next one is; without them IDLE is sent first.  Ends the process when the
 * broker is gone.  Returns FAILED when no process can be made any more; in a
 * child as enclose_jail(), or HARVEST, BESIDE or TIDY. */
int supervisor_keep(struct supervisor *k);

/* Give up all capabilities, and all system calls that the filter refuses; with
 * goes_first, be the first process to be killed when memory runs out.  DONE or
 * FAILED. */
int supervisor_surrender(struct supervisor *k, int goes_first);

#endif
