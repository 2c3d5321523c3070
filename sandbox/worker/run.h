#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "../protocol/conversation.h"
#include "../protocol/lease.h"
#include "render/outcome.h"

struct task;

/*
 * Drive a leased cell through a job's requests.
 */

struct run {
	struct task *task;
	struct lease lease;
	char cell_name[64]; /* for logs, also after the lease is closed */
	struct run_outcome outcome;
};

/* Lease a cell of the class, to do what access says, for requests of wall_ms in
 * all, waiting at most wait_ms.  False: outcome says why not, and the log.
 * Call run_close() in any case. */
bool run_open(struct run *run, struct task *task, const char *class,
    enum access access, int64_t wall_ms, int wait_ms);
/* claimed → started, once.  False: the job is not ours (or the database
 * fails): do nothing. */
bool run_start(struct task *task);
/* Start the job if it is not started, send the request, take its events to the
 * end.  True: there is a result, whatever it says. */
bool run_request(struct run *run, const struct cell_request *request,
    int64_t wall_ms, const struct cell_sink *sink);
void run_close(struct run *run);

#endif
