/* SPDX-License-Identifier: MIT */
#ifndef ENCLOSE_H
#define ENCLOSE_H

#include <stddef.h>

struct supervisor;

/*
 * One process after another, each in a jail where there are jails: what must be
 * there before a run, and its end.
 */

/* Make a jail and the process of the next run.  DONE in the supervisor; FAILED:
 * there is none.  In that process as run_process_take(); without jails AHEAD:
 * the interpreter rehearses, and calls that itself.  A lease that goes on,
 * state->watch.lease, is the process's own from the start. */
int enclose_jail(struct supervisor *k);

/* What the run's process says, into state->said, with a NUL behind it; 0 when
 * it has ended.  Ends the cell when the broker is gone. */
size_t enclose_hear(struct supervisor *k);

/* Without a jail: where the folders are now that its request is there.  They
 * may have been mounted since the process was made (a spare cell's). */
void enclose_find_folders(struct supervisor *k);

/* Nothing of the run is left, but the lease.  Harmless when it is called again.
 */
void enclose_end(struct supervisor *k);

#endif
