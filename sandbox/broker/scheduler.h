/* SPDX-License-Identifier: MIT */
#ifndef SCHEDULER_H
#define SCHEDULER_H

struct pool;

/* Serve and start whatever can be; end what is idle too long, or too many. */
void scheduler_run(struct pool *pool);

#endif
