/* SPDX-License-Identifier: MIT */
#ifndef SUBMIT_H
#define SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "discord/answer.h"
#include "discord/chat_metrics.h"
#include "discord/interaction.h"

#include "base/buf.h"
#include "base/err.h"
#include "store/job.h"
#include "store/rule.h"
#include "store/sandbox.h"
#include "store/view.h"

struct config;
struct db;
struct pending;

/* Discord waits for an answer for 3 s.  A later answer is lost, so its job is
 * not begun. */
#define SUBMIT_WITHIN_MS 2800
/* A node that has handed an interaction on waits for 1.9 s (nginx/discord.conf)
 * and tells the person then: nothing may be begun after that. */
#define SUBMIT_RELAYED_MS 1800
/* An editor can only be the first response, so a worker has longer for it. */
#define SUBMIT_EDITOR_MS 2300
/* A response that is held back is sent so long before its time is over. */
#define SUBMIT_SPARE_MS 100

/* What Discord is answered. */
struct reply {
	int status;		/* HTTP */
	char *body;		/* JSON, heap; NULL: an empty body */
	const char *outcome;	/* a word for the log, static */
	enum chat_outcome said; /* of status 200, for who counts */
	int64_t job_id;	 /* the workers are to be woken; 0: there is none */
	int64_t hold_ms; /* so long after the receipt a worker may give
			  * another body; 0: it may not */
	char *headers;	 /* further lines of the head, heap; or NULL */
	bool pledged;	 /* true only once the group is committed */
	struct err err;	 /* our own fault, for the log; ERR_NONE: none */
};

/* An interaction on its way to its reply. */
struct context {
	const struct config *config; /* borrowed, as the next four */
	struct db *db; /* NULL: the database does not open just now */
	const struct interaction *in;
	struct reply *reply;
	struct pending *pending;
	int64_t received_ms; /* wall clock; by nginx, where it says so */
	int64_t until_ms;    /* nothing is begun later */
	int64_t holder;	     /* who may hold the response back; -1: nobody */

	/* What it asks for; the strings are those of `in` and of the view, so
	 * the job is never released. */
	struct job job;
	struct rules rules;	/* filled once the person is let in */
	struct sandbox sandbox; /* submit_sandbox() */
	struct view view;	/* the one that a button came from, or is for */
	enum action action;	/* of a button or an editor */
	const char *word;	/* of its id */
	struct buf links;	/* of the job, where it has several files */
	struct buf names;
};

void reply_release(struct reply *reply);
/* How it counts when it is sent as it is. */
enum chat_outcome reply_counts_as(const struct reply *reply);
/* 200 with the JSON, which the reply owns from now on. */
void reply_set(struct reply *reply, char *body, const char *outcome);
/* Something else is said of the job, which goes on; json: heap, or NULL. */
void reply_instead(struct reply *reply, char *json);
/* A status and {"error":"outcome"}, for who is no person. */
void reply_error(struct reply *reply, int status, const char *outcome);

/* Answer with a private message.  argument: for the text's "{}", or "".  Always
 * false, which is what a check says that ends with it. */
bool submit_refuse(struct context *c, enum text_id text, const char *argument,
    const char *outcome);
/* The same, and after the text more of ours. */
bool submit_refuse_with(struct context *c, enum text_id text,
    const char *argument, const struct buf *more, const char *outcome);
/* A text in which commands can be clicked; heap. */
char *submit_clickable(struct context *c, const struct buf *text);
/* reply->err is filled: tell the person that it is our fault.  Always false. */
bool submit_fault(struct context *c, const char *outcome);
/* The commit failed with err: tell the person that it is our fault. */
void submit_lost(struct context *c, const struct err *err);

/* Take the text of an option or an input, at most max bytes; an empty one is
 * NULL.  False: the reply says what is wrong with it. */
bool submit_text(struct context *c, const struct interaction_value *value,
    size_t max, char **slot);
/* The invoker's sandbox, if it can be used.  False: the reply says why not. */
bool submit_sandbox(struct context *c);
/* Make a view of the invoker's.  False: the reply says that it failed. */
bool submit_view(struct context *c, struct view *view);
/* Commit the job and answer as its answer and share say.  What all jobs take
 * from the interaction is filled in here. */
void submit_job(struct context *c);

/* ---- route.c, actions.c ---- */

/*
 * From an interaction (not a PING) to its reply.  The slash commands, buttons
 * and editors that there are stand in sandbox/store/commands.def.
 */
void route(struct context *c);
/* In whose slot (protocol/node_table.h) that is: of the row that a button is
 * about, or of whoever invoked it; -1: it needs no sandbox and no row. */
int route_slot(const struct interaction *in);
/* Of these the message components and modals. */
void route_action(struct context *c);
int route_action_slot(const struct interaction *in);

#endif
