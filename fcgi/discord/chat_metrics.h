/* SPDX-License-Identifier: MIT */
#ifndef CHAT_METRICS_H
#define CHAT_METRICS_H

#include <stdint.h>

#include "discord/interaction.h"

struct config;
struct db;
struct err;

/*
 * The metrics of chat: interactions, counted here in memory that all processes
 * of il-fcgi share; jobs and calls of Discord's REST API, counted by the
 * workers (protocol/tally.h); counts of rows in the database.  The master
 * writes all of it to STATE/front/metrics, which il-api hands out.
 */
enum chat_outcome {
	CHAT_PONG,
	CHAT_SAID,	/* answered here: an editor, a question, suggestions */
	CHAT_REFUSED,	/* a person was told why not */
	CHAT_FAULT,	/* a person was told that it is our fault */
	CHAT_ANSWERED,	/* by a worker, in time */
	CHAT_DEFERRED,	/* "thinking…": the answer comes later */
	CHAT_HANDED_ON, /* to the person's node, which answers */
	CHAT_HUNG_UP,	/* the client had gone */
	CHAT_LATE,	/* dropped: Discord had given up */
	CHAT_UNSIGNED,	/* or with an old signature */
	CHAT_DENIED,	/* no interaction of ours */
	CHAT_OUTCOMES,
};

struct chat_metrics;

struct chat_metrics *chat_metrics_open(struct err *err);
void chat_metrics_close(struct chat_metrics *m);

/* Count an interaction by its type (0: not known) and its outcome; received_ms:
 * wall clock. */
void chat_metrics_count(struct chat_metrics *m, enum interaction_type type,
    enum chat_outcome outcome, int64_t received_ms);

/* Write the file.  db NULL: the database does not answer. */
int chat_metrics_tell(const struct chat_metrics *m, const struct config *config,
    struct db *db, struct err *err);

#endif
