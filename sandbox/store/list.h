/* SPDX-License-Identifier: MIT */
#ifndef LIST_H
#define LIST_H

#include <stdint.h>

#include "job.h"
#include "sandbox.h"

struct db;
struct err;

/* Rows for an operator's eyes: one call for each, in order.  They read, and so
 * hold nobody up. */

/* All sandboxes, the next to expire first. */
int list_sandboxes(struct db *db, void (*each)(const struct sandbox *sandbox),
    struct err *err);

/* Of a job, what may be shown: nothing that anybody wrote. */
struct list_job {
	int64_t id;
	int64_t user_id;
	const char *kind;
	const char *state;
	const char *outcome;
	int64_t received_ms;
	int64_t took_ms; /* from receipt until it was told; -1: not yet */
};

/* At most `most` jobs, the newest first; unfinished: only those that are not
 * over. */
int list_jobs(struct db *db, bool unfinished, int64_t most,
    void (*each)(const struct list_job *job), struct err *err);

#endif
