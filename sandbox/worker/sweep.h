#ifndef SWEEP_H
#define SWEEP_H

#include <stdint.h>

struct worker;

/*
 * What is done between jobs.  All workers do all of it; the database's
 * compare-and-set and the slots' locks keep them out of each other's way.
 */

/* Take over what dead workers left: their claimed jobs are queued again, their
 * started ones are told as interrupted, their answers are sent. */
void sweep_slots(struct worker *worker);

/* One round: slots, answers that wait, expired sandboxes, old rows, the
 * database's log.  Returns the monotonic time of the next one. */
int64_t sweep_run(struct worker *worker);

#endif
