/* SPDX-License-Identifier: MIT */
#ifndef ROUTE_H
#define ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "discord/chat_answer.h"
#include "discord/interaction.h"

#include "base/basics.h"
#include "store/job.h"
#include "store/sandbox.h"

struct config;
struct db;
struct pending;

/* Discord waits 3 s for an answer.  A later answer is lost, so no job is begun
 * for it. */
#define ROUTE_WITHIN_MS 2800
/* A node that has handed an interaction on waits for 1.9 s (nginx/discord.conf)
 * and tells the person then: nothing may be begun after that. */
#define ROUTE_RELAYED_MS 1800
/* An editor can only be the first response, so a worker has longer for it. */
#define ROUTE_EDITOR_MS 2300
/* A delayed response is sent so long before its time is over. */
#define ROUTE_SPARE_MS 100

/* The answer to Discord. */
struct reply {
	int status;		/* HTTP */
	char *body;		/* JSON, heap; NULL: an empty body */
	const char *outcome;	/* a word for the log, static */
	enum chat_outcome said; /* of status 200, for the counters */
	int64_t job_id;		/* a worker is to be woken for it; 0: none */
	int64_t hold_ms;	/* so long after the receipt a worker may send
			  * another body; 0: it may not */
	char *headers;		/* further lines of the head, heap; or NULL */
	bool pledged;		/* true only once the group is committed */
	struct err err;		/* our own fault, for the log; ERR_NONE: none */
};

/* An interaction on its way to its reply. */
struct context {
	const struct config *config; /* borrowed, as the next four */
	struct db *db;		     /* NULL: it does not open just now */
	const struct interaction *in;
	struct reply *reply;
	struct pending *pending;
	int64_t received_ms; /* wall clock; nginx's, where it sends that */
	int64_t until_ms;    /* nothing is begun later */
	int64_t holder;	     /* index of a process that can delay it; -1 */

	/* The strings are those of `in` and of the view, so the job is never
	 * released. */
	struct job job;
	struct rules rules;	/* filled once the person is let in */
	struct sandbox sandbox; /* route_sandbox() */
	struct view view;	/* of the pressed button, or of the next one */
	enum action action;	/* of a button or an editor */
	const char *word;	/* of the action's id */
	struct buf links;	/* of the job's files, in lines */
	struct buf names;
};

/* 200 with the JSON, which the reply owns from now on. */
void reply_set(struct reply *reply, char *body, const char *outcome);
/* A status and {"error":"outcome"}, for programs. */
void reply_status(struct reply *reply, int status, const char *outcome);

/* Answer with a private message, a REFUSAL of texts.def.  argument: for the
 * text's "{}", or "".  Always false, so that a check can end with it. */
bool route_refuse(struct context *c, enum text_id text, const char *argument);
/* reply->err is filled: tell the person that it is our fault.  Always false. */
bool route_fault(struct context *c, const char *outcome);
/* The commit failed with err: tell the person that it is our fault. */
void route_lost(struct context *c, const struct err *err);

/* Read the text of an option or an input, at most max bytes; an empty one is
 * NULL.  False: the reply says what is wrong with it. */
bool route_text(struct context *c, const struct interaction_value *value,
    size_t max, const char **slot);
/* Load the invoker's sandbox into c.  False: the reply says why it is not
 * usable. */
bool route_sandbox(struct context *c);
/* Fill in the fields of the interaction, commit the job, and answer as its
 * answer and share say. */
void route_job(struct context *c);

/* From an interaction (not a PING) to its reply.  Slash commands, buttons and
 * editors are rows of sandbox/store/commands.def. */
void route(struct context *c);
/* The slot (protocol/node_table.h) of the row that a button refers to, or of
 * the invoker; -1: the interaction needs no sandbox and no row. */
int route_slot(const struct interaction *in);
/* The same for message components and modals (actions.c). */
void route_action(struct context *c);
int route_action_slot(const struct interaction *in);

#endif
