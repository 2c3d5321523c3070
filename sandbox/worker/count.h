/* SPDX-License-Identifier: MIT */
#ifndef COUNT_H
#define COUNT_H

#include <stdint.h>

#include "protocol/tally.h"

struct task;
struct worker;

/* Open the worker's counters for the operator (protocol/tally.h), and its pulse
 * (protocol/pulse.h).  The worker goes on without a file that cannot be
 * opened. */
void count_open(struct worker *worker);
void count_close(const struct worker *worker);

/* Beat: the worker is busy; called wherever it may have waited. */
void count_beat(struct worker *worker);
/* Beat: the worker waits within its job, and beats again within wait_ms. */
void count_wait(struct worker *worker, int64_t wait_ms);
/* Beat: the worker is idle, and beats again within wait_ms. */
void count_rest(struct worker *worker, int64_t wait_ms);

/* Count a job that is over, the time that it waited and its duration. */
void count_task(const struct task *task, int64_t waited_ms, int64_t took_ms);

#endif
