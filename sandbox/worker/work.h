#ifndef WORK_H
#define WORK_H

#include <stdbool.h>

struct worker;

/* Take over what the last holder of our slot left. */
void work_recover(struct worker *worker);

/* Claim the oldest queued job, do it and tell about it.  False: there was
 * none. */
bool work_next(struct worker *worker);

#endif
