/* SPDX-License-Identifier: MIT */
#ifndef CHAT_HEALTH_H
#define CHAT_HEALTH_H

#include <stdint.h>

#include "../../sandbox/protocol/condition.h"

struct config;
struct context;
struct db;
struct held_case;

/*
 * How Inline is, for people (sandbox/protocol/condition.h): /health, which is
 * answered here and at once, since a job would wait for what it asks about; and
 * a sentence in place of "thinking…" where nobody may ever come to an end of
 * that.
 */
void chat_health_answer(struct context *c);

/* What a process knows of it. */
struct chat_health {
	const struct config *config;
	struct db **db;		  /* its own, NULL while it does not open */
	int64_t judged_ms;	  /* monotonic; 0: not yet */
	enum condition condition; /* as of then */
};

/* What is said in place of it->late, JSON on the heap; NULL: that may be said.
 * The job is in the queue all the same, and its answer edits this. */
char *chat_health_instead(void *chat_health, const struct held_case *it);

#endif
