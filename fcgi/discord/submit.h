#ifndef SUBMIT_H
#define SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "interaction.h"
#include "texts.h"

#include "../../sandbox/base/err.h"

struct config;
struct db;
struct job;
struct sandbox;
struct view;

/* What an interaction is decided with; all borrowed. */
struct context {
	struct db *db; /* NULL: the database does not open just now */
	const struct config *config;
	int64_t received_ms; /* wall clock; by nginx, where it says so */
};

/* Discord waits for an answer for 3 s.  What comes later nobody sees, and what
 * it would have begun is not begun. */
#define SUBMIT_WITHIN_MS 2800

/* What Discord is answered. */
struct reply {
	int status;	     /* HTTP */
	char *body;	     /* JSON, heap; NULL: an empty body */
	const char *outcome; /* a word for the log, static */
	int64_t job_id;	     /* the workers are to be woken; 0: there is none */
	bool pledged;	     /* true only once the group is committed */
	struct err err;	     /* our own fault, for the log; ERR_NONE: none */
};

void reply_release(struct reply *reply);
/* 200 with the JSON, which the reply owns from now on. */
void reply_set(struct reply *reply, char *body, const char *outcome);

/* Answer with a private message.  argument: for the text's "{}", or "". */
void submit_refuse(const struct interaction *in, enum text_id text,
    const char *argument, const char *outcome, struct reply *reply);
/* It is too late for any answer: 504, for the log of the web server. */
void submit_late(struct reply *reply);
/* reply->err is filled: tell the person that it is our fault. */
void submit_fault(const struct interaction *in, const char *outcome,
    struct reply *reply);

/* The invoker's sandbox, if it can be used.  False: the reply says why not. */
bool submit_sandbox(const struct context *context, const struct interaction *in,
    struct sandbox *sandbox, struct reply *reply);
/* Make a view of the invoker's.  False: the reply says that it failed. */
bool submit_view(const struct context *context, const struct interaction *in,
    struct view *view, struct reply *reply);

/* A new job whose strings are all "" (job_init() leaves them NULL); release it
 * with job_release(). */
void submit_init(struct job *job);
/* Commit the job and answer as job->answer and job->share say.  What all jobs
 * take from the interaction is filled in here. */
void submit_job(const struct context *context, const struct interaction *in,
    struct job *job, struct reply *reply);

/* Put a copy of the text into a string of a job. */
void submit_copy(char **slot, const char *text);

#endif
