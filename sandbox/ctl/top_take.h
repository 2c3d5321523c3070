/* SPDX-License-Identifier: MIT */
#ifndef TOP_TAKE_H
#define TOP_TAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/err.h"
#include "../protocol/lease_status.h"
#include "../store/job.h"

/* What runs now, for `ilctl top`. */
#define TOP_CELLS 200 /* as the broker tells */
#define TOP_JOBS 200

struct top_cell {
	/* as the broker tells */
	char name[64];
	char class[16];
	char sandbox[33]; /* "" for none */
	char interpreter[64];
	char state[16];
	int64_t state_ms; /* in it for so long */
	int64_t runs;	  /* leases that are over */
	bool kept;	  /* it keeps an interpreter for the next run */
	int64_t pid;	  /* of its first process; 0: not known */

	/* by others */
	int64_t user_id; /* whose sandbox it is; 0: nobody's, or not known */
	int64_t cpu_ms;	 /* of the container; -1: not known */
	int64_t memory;	 /* likewise, bytes */
};

struct top_job {
	int64_t id;
	int64_t slot; /* of its worker; -1: none has it */
	int64_t user_id;
	int64_t guild_id;
	char kind[32];
	char state[16];
	int64_t age_ms; /* since it was received, and */
	int64_t run_ms; /* since it began */
};

struct top {
	struct lease_status broker;
	struct job_counts jobs_count;
	int64_t cells_count; /* that there are; -1: il-sandboxd does not say, */
	struct err trouble;  /* and why not */
	size_t cells;
	size_t jobs;
	struct top_cell cell[TOP_CELLS];
	struct top_job job[TOP_JOBS];
};

struct config;
/* Jobs are told without a broker, too. */
int top_take(const struct config *config, struct top *top, struct err *err);

#endif
