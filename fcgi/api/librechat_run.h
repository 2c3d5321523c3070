/* SPDX-License-Identifier: MIT */
#ifndef LIBRECHAT_RUN_H
#define LIBRECHAT_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "api/app.h"
#include "api/run.h"
#include "contract/librechat/libre_answer.h"
#include "contract/librechat/libre_program.h"
#include "files/filestore.h"

struct api_app;
struct http_request;

/*
 * The cell that the runs of a conversation have in common, one at a time: its
 * work folder stays from one to the next.  The cell ends when no run has come
 * for IL_LIBRECHAT_REST_SECONDS, or when another session of the same owner
 * needs room.
 */
struct libre_session {
	char id[SESSION_ID_SIZE];
	bool fresh;		      /* it was made for this run */
	struct session_borrowed cell; /* connection -1: the run has its own */
	bool used;		      /* a run went to its end in it */
};

/*
 * A program of LibreChat's in a cell of its own, with files from the store and
 * into it.
 */

#define LIBRE_PLACE_MAX 64

/* An input of the request. */
struct source {
	const struct libre_file *file;
	bool missing; /* the store has it not, or not for who asks */
	bool read_only;
	bool changed; /* by the run, which left another one in its place */
	bool gone;    /* by the run, which left none */
};

/* A run, and what comes back of it. */
struct libre_run {
	/* set by the caller; all else is zero */
	struct api_run run; /* app, req */
	const struct libre_exec *exec;
	/* That calls tools: NULL, or what is put beside it. */
	const struct libre_program *program;
	char session[LIBRE_ID_LEN + 1]; /* of the files that it leaves */
	struct libre_session own;	/* the conversation's cell, if any */
	/* set by the run */
	struct source *sources; /* one for each file of exec */
	struct cell_input *inputs;
	size_t input_count;
	size_t beside;	/* the first ones, which are not of the store */
	bool cancelled; /* its client is gone */
	struct libre_stream out;
	struct libre_stream err;
	struct filestore_new fresh; /* the file that is coming in */
	struct libre_made *made;
	size_t made_count;
	struct buf calls;     /* what it calls, as it says */
	bool has_calls;	      /* it has left a file of them, */
	bool taking_calls;    /* which is coming in */
	const char **missing; /* names; NULL at the end, as of the next */
	const char **deleted;
	struct libre_outcome outcome;
	char helper[LIBRE_PLACE_MAX]; /* paths of what was put beside it */
	char state[LIBRE_PLACE_MAX];
	char left[LIBRE_PLACE_MAX]; /* and of what it calls */
	const char *words[2];
};

/* Run it.  Unless that was answered already, answer() has the outcome to look
 * at, and answers; api_run_end() and the release follow in any case. */
void librechat_run(struct libre_run *x,
    void (*answer)(struct libre_run *x, void *arg), void *arg);
/* Whatever it has left in the store is not wanted. */
void librechat_run_forget(struct libre_run *x);

#endif
