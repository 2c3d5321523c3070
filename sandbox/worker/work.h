#ifndef WORK_H
#define WORK_H

#include <stdbool.h>

struct worker;

/* Claim the oldest queued job, do it and tell about it.  False: there was
 * none. */
bool work_next(struct worker *worker);

#endif
