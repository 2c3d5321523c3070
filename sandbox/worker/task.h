/* SPDX-License-Identifier: MIT */
#ifndef TASK_H
#define TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "../protocol/lease.h"
#include "../base/config.h"
#include "../store/job.h"
#include "../store/sandbox.h"
#include "render/render.h"

struct worker;

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
	bool renamed;	  /* names may not be those that are kept: naming.h */

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
