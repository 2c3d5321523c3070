/* SPDX-License-Identifier: MIT */
#ifndef CHAT_HEALTH_H
#define CHAT_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/condition.h"

struct config;
struct db;
struct held_case;
struct job;

/*
 * How Inline is, for people (sandbox/protocol/condition.h): /health, which is
 * answered here and at once, since a job would wait for what it asks about; and
 * a sentence in place of "thinking…" where nobody may ever come to an end of
 * that.
 */

/* What a process knows of it. */
struct chat_health {
	const struct config *config;
	struct db **db;		  /* its own, NULL while it does not open */
	int64_t judged_ms;	  /* monotonic; 0: not yet */
	enum condition condition; /* as of then */
};

/* The answer to /health, JSON on the heap; skew_ms: our clock is so much ahead
 * of Discord's. */
char *chat_health_answer(struct chat_health *h, int64_t skew_ms);
/* What is said in place of it->late, JSON on the heap; NULL: that may be said.
 * The job is in the queue all the same, and its answer edits this. */
char *chat_health_instead(void *chat_health, const struct held_case *it);
/* Is it a fault of ours that a job is not over?  job_alone() has found it, and
 * the database is open. */
bool chat_health_is_fault(struct chat_health *h, const struct job *job);

#endif
