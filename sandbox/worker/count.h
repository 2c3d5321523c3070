/* SPDX-License-Identifier: MIT */
#ifndef COUNT_H
#define COUNT_H

#include <stdint.h>

#include "protocol/tally.h"

struct task;
struct worker;

/* Open the worker's counters for the operator (protocol/tally.h), and its pulse
 * (protocol/pulse.h).  A file that cannot be opened is done without: no job
 * waits for it. */
void count_open(struct worker *worker);
void count_close(const struct worker *worker);

/* The worker does its job; called wherever it may have waited. */
void count_beat(struct worker *worker);
/* It waits in its job: it calls one of these again within so long. */
void count_wait(struct worker *worker, int64_t wait_ms);
/* It waits for so long at most, with nothing to do. */
void count_rest(struct worker *worker, int64_t wait_ms);

/* A job is over; how long it waited for us, and took. */
void count_task(const struct task *task, int64_t waited_ms, int64_t took_ms);

#endif
