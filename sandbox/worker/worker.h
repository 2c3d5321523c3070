/* SPDX-License-Identifier: MIT */
#ifndef WORKER_H
#define WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/basics.h"
#include "protocol/lease.h"
#include "protocol/counters.h"
#include "store/commands.h"
#include "store/job.h"
#include "store/sandbox.h"
#include "worker/render/render.h"

struct db;
struct node_table;
struct pulse;
struct rest;

/* Messages with files that are still to be sent (deliver.c). */
#define DELIVER_KEPT 4

struct deliver_kept {
	int64_t job_id; /* 0: free */
	int tries;
	struct message message;
};

/* State of a worker for as long as it lives. */
struct worker {
	const struct config *config;
	struct db *db;
	struct rest *rest;
	/* The other nodes (node_table.h); NULL: there are none. */
	struct node_table *nodes;
	struct counters *counters;
	struct pulse *pulse;	/* condition.h; NULL: it could not be opened */
	struct command_ids ids; /* for the texts; loaded for each job */
	struct rules rules;	/* the operator's, loaded for each job */
	int64_t slot;		/* its number to the database */
	int slot_lock;		/* flock on worker/<slot>.lock */
	int signal_fd;		/* SIGTERM, SIGINT; never read */
	int wake_fd;		/* the FIFO (handover.h) */
	int wait_fd;		/* for the FIFO and for signal_fd */
	int cancel_fd;	      /* cancellations (handover.h); -1: none is seen */
	char *lease_socket;   /* of the broker */
	int64_t prune_at_ms;  /* monotonic: when old rows are deleted next */
	bool unanswered;      /* Discord did not answer the last call */
	int64_t untold_after; /* the next round of deliveries begins after
				 * this job; 0: with the first */
	struct deliver_kept kept[DELIVER_KEPT];
};

/* Has the worker to end, by SIGTERM or SIGINT? (il-worker.c) */
bool worker_is_stopping(const struct worker *worker);

/* Wall clock time at which a job's token must not be used any more. */
#define TOKEN_LIFE_MS (14 * 60 * 1000 + 30 * 1000)

/*
 * A job that is being done.  Its command fills the message and the outcome
 * word; deliver.c sends the message.
 */
struct task {
	struct worker *worker;
	struct job *job;
	int64_t begun_ms; /* monotonic */
	int64_t until_ms; /* wall clock: the token is dead */
	bool started;	  /* job_start() has succeeded */
	bool taken;	  /* another worker has the job */

	struct sandbox sandbox; /* active; of kinds that need one */
	bool made_sandbox;	/* the answer says so */
	int64_t lost_at;	/* when the sandbox before it expired; 0: there
				 * was none */
	char path[PATH_SIZE];	/* the job's path; command_resolve() */

	/* the current directory that is gone, and the job's path at the top,
	 * where it is not in the current directory; "": none */
	char gone[PATH_SIZE];
	char elsewhere[PATH_SIZE];
	bool place_told; /* the answer names the current directory */

	struct view view; /* command_load_view(), with its texts */
	struct view_texts texts;

	/* of the cell's Python; "": any; command_choose_version() */
	char version[COMMAND_VERSION_MAX + 1];

	/* job_run.c: the cell, its events, the outcome of the last request */
	struct lease lease;
	int64_t asked_ms;	  /* monotonic, of the last request */
	bool keep;		  /* the cell may keep an interpreter, or
				   * does */
	enum kept_end kept_ended; /* why the broker ended that; 0: it did not */
	void (*tick)(void *task); /* called during a request; NULL: none */
	bool quiet;		  /* no more progress is to be shown */
	struct collect collect;
	struct run_outcome run;
	bool at_packages; /* the cell mounts the packages alone */
	bool renamed;	  /* the stored names may be out of date: job_run.c */

	struct config limits;  /* the settings, with the operator's rules for
			       * this person: env.config */
	struct render_env env; /* refers to what is here */
	struct message message;
	const char *outcome;  /* for statistics: "stored", "exit 0" */
	struct err err;	      /* a fault of ours in a command; or all zero */
	bool our_fault;	      /* the message says so */
	char word[WORD_SIZE]; /* room for an outcome that is not static */
	char *editor;	      /* heap: JSON of the first response that opens an
			       * editor, in the message's place; NULL: none */
	bool apart;  /* the answer is for its sender alone, whatever the job
		      * says */
	bool remove; /* delete the message of the button */
};

/* ---- job_run.c: the requests of a job ---- */

/* The events of a leased cell go to task->collect, the outcome to
 * task->run. */

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

/* ---- job_run.c: the counters and the pulse of a worker ---- */

/* Open the worker's counters (protocol/counters.h) and its pulse
 * (protocol/condition.h).  The worker goes on without a file that cannot be
 * opened. */
void count_open(struct worker *worker);

/* Beat: the worker is busy; called wherever it may have waited. */
void count_beat(struct worker *worker);
/* Beat: the worker waits within its job, and beats again within wait_ms. */
void count_wait(struct worker *worker, int64_t wait_ms);

/* Count a job that is over, the time that it waited and its duration. */
void count_task(const struct task *task, int64_t waited_ms, int64_t took_ms);

/* ---- deliver.c: answers to Discord ---- */

/*
 * An answer is stored before it is sent.  If
 * it could not be sent (Discord was away, the worker was killed), it is sent
 * from the database, as long as its token lives.  Files are not in the
 * database: they stay in memory for a while, and after a crash the answer says
 * where they are.
 */

/* Load the operator's rules for this job; their banner stands below all
 * answers. */
void deliver_read_rules(struct worker *worker, const struct job *job);

/* Finish the task's job, and deliver its answer if that is possible now.  The
 * message may move out of the task.  While the database is full or locked, the
 * worker tries to store the end, and does nothing else. */
void deliver_task(struct task *task);

/* Deliver the waiting answers of a slot, those of interrupted jobs among them.
 * Each has one try.  After two failures the others wait for the next round,
 * which begins with them. */
void deliver_untold(struct worker *worker, int64_t slot);

#endif
