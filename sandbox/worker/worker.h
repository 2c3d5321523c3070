/* SPDX-License-Identifier: MIT */
#ifndef WORKER_H
#define WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "../store/command_id.h"
#include "../store/rule.h"
#include "render/message.h"

struct config;
struct db;
struct node_table;
struct pulse;
struct rest;
struct tally;

/* Messages with files that are still to be sent (deliver.h). */
#define DELIVER_KEPT 4

struct deliver_kept {
	int64_t job_id; /* 0: free */
	int tries;
	struct message message;
};

/* What the database could not be told of one job: it is full, or was locked for
 * long.  No other job is begun before. */
struct deliver_owed {
	int64_t job_id; /* 0: nothing */
	char *body;	/* heap; NULL: it is noted as finished */
	char outcome[48];
	int64_t cpu_ms; /* -1: not known */
	bool told;	/* note that, too */
};

/* What a worker holds for as long as it lives. */
struct worker {
	const struct config *config;
	struct db *db;
	struct rest *rest;
	/* The other nodes (node_table.h); NULL: there are none. */
	struct node_table *nodes;
	struct tally *tally;	/* count.h; NULL: nothing is counted */
	struct pulse *pulse;	/* pulse.h; NULL: nothing is noted */
	struct command_ids ids; /* for the texts; read for each job, */
	struct rules rules;	/* as what the operator has said */
	int64_t slot;		/* its number to the database */
	int slot_lock;		/* flock on worker/<slot>.lock */
	int signal_fd;		/* SIGTERM, SIGINT; never read */
	int wake_fd;		/* the FIFO (wake.h) */
	int wait_fd;		/* for the FIFO and for signal_fd */
	int cancel_fd;		/* jobs are to be cancelled (cancel.h); -1:
				 * nothing is watched */
	char *lease_socket;	/* of the broker */
	int64_t prune_at_ms;	/* monotonic: when old rows are deleted next */
	bool unanswered;	/* Discord did not answer the last time */
	int64_t untold_after;	/* the job after which the next round of telling
				 * begins; 0: the first */
	struct deliver_kept kept[DELIVER_KEPT];
	struct deliver_owed owed;
};

/* Wall clock time at which a job's token must not be used any more. */
#define TOKEN_LIFE_MS (14 * 60 * 1000 + 30 * 1000)

#endif
