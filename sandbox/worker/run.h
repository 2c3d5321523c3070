/* SPDX-License-Identifier: MIT */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/conversation.h"
#include "protocol/frame.h"

struct task;

/*
 * Drive a leased cell through a job's requests.  What the cell sends goes to
 * task->collect, what comes of it to task->run.
 */

/* Lease a cell of the class, to do what access says, for requests of wall_ms in
 * all.  False: task->run says why not, and the log.  Call run_close() in any
 * case. */
bool run_open(struct task *task, const char *class, enum access access,
    int64_t wall_ms);
/* claimed → started, once.  False: the job is not ours (or the database
 * fails): do nothing. */
bool run_start(struct task *task);
/* Start the job if it is not started, send the request, take its events to the
 * end.  True: there is a result, whatever it says. */
bool run_request(struct task *task, const struct cell_request *request);

/* Close the lease; but not yet if the cell has still to tell names. */
void run_close(struct task *task);
/* Ask the cell for the names in its sandbox, if it is still there and they may
 * have changed, keep them, close the lease. */
void run_keep_names(struct task *task);

/* Lease, ask and close, for the only request in this cell, which needs no
 * room. */
void run_once(struct task *task, const char *class,
    const struct cell_request *request);

#endif
