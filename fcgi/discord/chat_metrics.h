/* SPDX-License-Identifier: MIT */
#ifndef CHAT_METRICS_H
#define CHAT_METRICS_H

#include <stdint.h>

#include "discord/interaction.h"

struct config;
struct db;
struct err;

/*
 * What the operator is told of chat: the interactions, counted here in memory
 * that all processes of il-fcgi share; the jobs and Discord's REST API, counted
 * by the workers (protocol/tally.h); what is in the database.  The master
 * writes all of it to STATE/front/metrics, which il-api hands out.
 */
enum chat_outcome {
	CHAT_PONG,
	CHAT_SAID,	/* answered here: an editor, a question, suggestions */
	CHAT_REFUSED,	/* a person was told why not */
	CHAT_FAULT,	/* and that it is our fault */
	CHAT_ANSWERED,	/* by a worker, in time */
	CHAT_DEFERRED,	/* "thinking…": the answer comes later */
	CHAT_HANDED_ON, /* to the person's node, which answers */
	CHAT_HUNG_UP,	/* the client had gone */
	CHAT_LATE,	/* dropped: Discord had given up */
	CHAT_UNSIGNED,	/* or not signed of late */
	CHAT_DENIED,	/* no interaction of ours */
	CHAT_OUTCOMES,
};

struct chat_metrics;

struct chat_metrics *chat_metrics_open(struct err *err);
void chat_metrics_close(struct chat_metrics *m);

/* One was answered so; when it was received, by the wall clock.  type 0: not
 * known. */
void chat_metrics_count(struct chat_metrics *m, enum interaction_type type,
    enum chat_outcome outcome, int64_t received_ms);

/* Write the file.  db: NULL, the database does not answer. */
int chat_metrics_tell(const struct chat_metrics *m, const struct config *config,
    struct db *db, struct err *err);

#endif
