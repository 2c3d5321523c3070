/* SPDX-License-Identifier: MIT */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/conversation.h"
#include "protocol/frame.h"

struct task;

/*
 * Drive a leased cell through a job's requests.  The cell's events go to
 * task->collect, the outcome to task->run.
 */

/* Lease a cell of the class, with this access, for requests of wall_ms in all.
 * False: task->run and the log say why not.  Call run_close() in any case. */
bool run_open(struct task *task, const char *class, enum access access,
    int64_t wall_ms);
/* claimed → started, once.  False: another worker has the job, or the database
 * fails: do nothing. */
bool run_start(struct task *task);
/* Start the job if it is not started, send the request, collect its events.
 * True: there is a result, whatever it says. */
bool run_request(struct task *task, const struct cell_request *request);

/* Close the lease, unless the cell is still to list names. */
void run_close(struct task *task);
/* Store the names in the sandbox, if the cell is still there and they may have
 * changed; close the lease. */
void run_keep_names(struct task *task);

/* Lease, ask and close, for the only request in this cell, which needs no
 * room. */
void run_once(struct task *task, const char *class,
    const struct cell_request *request);

#endif
