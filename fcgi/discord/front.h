/* SPDX-License-Identifier: MIT */
#ifndef FRONT_H
#define FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include "discord/chat_health.h"
#include "discord/held.h"
#include "discord/interaction.h"
#include "discord/submit.h"
#include "server/serve.h"

#include "protocol/wake.h"

struct config;
struct db;
struct http_request;
struct chat_metrics;
struct node_table;
struct siblings;

/*
 * POST /interactions: everything between the HTTP request and its answer.  The
 * checks come in this order, and the first that fails is the answer: path (404)
 * and method (405), length (411, 413, 400), too late for an answer (504; once
 * more before anything is committed), signature (401), JSON (400), type
 * (400), freshness (401), application (400).  A PING needs the signature only.
 * Interactions that pass them and come together are handed on to the node of
 * their person, where that is another one, or committed together, and
 * answered after that: at once, or, where a job was made, when a worker has its
 * answer or IL_INSTANT_MS are over (held.h).
 */
#define FRONT_BODY_MAX (1 << 20)

/* An interaction that passed the checks, until it is answered. */
struct front_case {
	struct http_request *http; /* borrowed */
	struct interaction in;
	struct reply reply;
	int64_t received_ms; /* wall clock; by nginx, where it says so */
	int64_t until_ms;    /* nothing is begun later */
	int64_t started_us;  /* monotonic */
	int64_t answered_us;
	bool woken; /* a worker may be at it already */
	bool held;  /* the rest is held.c's: only what was asked is left here */
};

struct front {
	const struct config *config;
	struct interaction_key key;
	struct db *db;		      /* NULL: it did not open; tried again */
	int64_t db_retry_ms;	      /* monotonic: not before */
	struct siblings *siblings;    /* in memory that all of them share */
	struct chat_metrics *metrics; /* likewise */
	struct node_table *nodes;     /* NULL: there is this host alone */
	size_t index;		      /* which of them we are */
	struct wake wake;
	struct front_case cases[SERVE_TOGETHER];
	size_t answered; /* cases that are still to be logged */
	struct held held;
	struct chat_health health;
	int64_t log_second; /* denied requests are logged sparingly */
	int64_t log_count;
	int64_t stale_ms; /* monotonic: the next warning of the clock */
};

/* What all processes have; ERR_CONFIG when there is no usable public key.
 * front is large: static storage. */
int front_open(struct front *front, const struct config *config,
    struct err *err);
/* In the index-th of them, after the fork.  The database need not be there
 * yet. */
void front_start(void *front, size_t index);
/* In their parent: one of them was killed. */
void front_lost(void *front);
void front_close(void *front);

/* For struct serve: check a request; decide and answer all; after that,
 * wake the workers. */
bool front_take(void *front, struct http_request *req, size_t index);
void front_settle(void *front, size_t count);
void front_after(void *front, bool more);
/* And for what is held back. */
int front_events_fd(const void *front);
int64_t front_due_ms(const void *front);
void front_events(void *front);

#endif
