/* SPDX-License-Identifier: MIT */
#ifndef TASK_H
#define TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/err.h"
#include "protocol/lease.h"
#include "store/commands.h"
#include "store/job.h"
#include "store/rule.h"
#include "store/sandbox.h"
#include "worker/render/render.h"

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

/* End of one job that the database could not note, as it is full, or was locked
 * for long.  No other job is begun before. */
struct deliver_owed {
	int64_t job_id; /* 0: nothing */
	char *body;	/* heap; NULL: it is noted as finished */
	char outcome[WORD_SIZE];
	int64_t cpu_ms; /* -1: not known */
	bool told;	/* note that, too */
};

/* State of a worker for as long as it lives. */
struct worker {
	const struct config *config;
	struct db *db;
	struct rest *rest;
	/* The other nodes (node_table.h); NULL: there are none. */
	struct node_table *nodes;
	struct tally *tally;	/* count.h */
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

/*
 * A job while it is being done.  A command fills the message and the outcome
 * word; how it gets to Discord is not its concern.
 */
struct task {
	struct worker *worker;
	struct job *job;
	int64_t begun_ms; /* monotonic */
	int64_t until_ms; /* wall clock: the token is dead */
	bool started;	  /* job_start() has succeeded */
	bool taken;	  /* the job is not ours any more */

	struct sandbox sandbox; /* for kinds that need one: it is active */
	bool made_sandbox;	/* for this job: people are told */
	int64_t lost_at;	/* when the one before it expired; 0: none */
	char path[PATH_SIZE];	/* what it is about; command_resolve() */

	/* commands/place.c: the current directory that is gone, and where there
	 * is a path that is not in it; "": none */
	char gone[PATH_SIZE];
	char elsewhere[PATH_SIZE];
	bool place_told; /* the answer says where one is now */

	/* of the cell; "": whichever it has; command_choose_version() */
	char version[COMMAND_VERSION_MAX + 1];

	/* run.c: the cell, what it sent and what came of the last request */
	struct lease lease;
	int64_t asked_ms;	  /* monotonic: the cell, the last time */
	bool keep;		  /* it may keep an interpreter, or does */
	enum kept_end kept_ended; /* why it does not, as the broker says */
	void (*tick)(void *task); /* while a request goes on; NULL: none */
	bool quiet; /* it has nothing more to show before its end */
	struct collect collect;
	struct run_outcome run;
	bool at_packages; /* it is one that mounts the packages alone */
	bool renamed;	  /* names may not be those that are kept: run.c */

	struct config limits; /* the settings, with what the operator has
			       * said of this person: env.config */
	struct render_env env;
	struct message message;
	const char *outcome;  /* for statistics: "stored", "exit 0" */
	bool our_fault;	      /* it says "error" */
	char word[WORD_SIZE]; /* room for one that is not static */
	char *editor;	      /* heap: JSON of the first response that opens
			      * one, in the message's place; NULL: none */
	bool apart;  /* the first response is for its sender alone after all */
	bool remove; /* the message of the button goes */
};

#endif
