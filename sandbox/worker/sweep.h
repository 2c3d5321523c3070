/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_H
#define SWEEP_H

#include <stdint.h>

struct err;
struct worker;

/*
 * What is done between jobs.  All workers do all of it; the database's
 * compare-and-set and the slots' locks keep them out of each other's way.
 */

/* Take the slot's lock, worker/<slot>.lock: its descriptor.  -1 with ERR_BUSY:
 * who holds it lives. */
int sweep_lock_slot(const struct worker *worker, int64_t slot, struct err *err);

/* Take over what was left of a slot: claimed jobs are queued again, started
 * ones are told as interrupted, answers are sent.  The slot is one whose lock
 * we hold: a dead worker's, or our own between two jobs, where a database that
 * failed may have left a job that nobody works on. */
void sweep_slot(struct worker *worker, int64_t slot);

/* One round: dead workers' slots and our own, expired sandboxes, old rows, the
 * database's log.  Returns the monotonic time of the next one. */
int64_t sweep_run(struct worker *worker);

#endif
