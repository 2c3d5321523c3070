/* SPDX-License-Identifier: MIT */
#ifndef FRONT_H
#define FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include "discord/interaction.h"
#include "discord/pending.h"
#include "discord/route.h"
#include "server/serve.h"

#include "protocol/handover.h"

struct config;
struct db;
struct http_request;
struct node_table;

/*
 * POST /interactions: everything between the HTTP request and its answer.  The
 * checks come in this order, and the first that fails is the answer: path (404)
 * and method (405), length (411, 413, 400), too late for an answer (504; once
 * more before anything is committed), signature (401), JSON (400), type
 * (400), freshness (401), application (400).  A PING needs the signature only.
 *
 * Interactions that pass the checks and come together are decided in one
 * transaction.  nginx hands on those of another node's people.  The others are
 * answered after the commit: at once, or, where a job was made, when a worker
 * has its answer or IL_TUNE_INSTANT_MS are over (pending.h).
 */
#define FRONT_BODY_MAX (1 << 20)

/*
 * The wake-ups of workers that all processes of il-fcgi still owe, in memory
 * that they share.  During a burst they are delayed, for a moment at most: what
 * the workers start, containers at worst, takes the processors from the burst.
 * Any process may be killed at any moment.
 */
#define FRONT_PROCESSES 2 /* processors; the database has one writer */
#define FRONT_WAKES_DELAY_MS 100

struct front_wakes {
	/* Since when a process has requests in hand; 0: it has none. */
	_Atomic int64_t busy_ms[FRONT_PROCESSES];
	_Atomic size_t owed;
	_Atomic int64_t owed_ms; /* since when */
};

/* The index-th process has a request in hand. */
void front_wakes_begin(struct front_wakes *w, size_t index, int64_t now_ms);
/* It has none any more; `jobs` are new.  more: it takes others at once.
 * Returns how many wake-ups are due: the caller makes them. */
size_t front_wakes_end(struct front_wakes *w, size_t index, size_t jobs,
    bool more, int64_t now_ms);
/* Is the index-th process the only one that has a request in hand? */
bool front_wakes_alone(const struct front_wakes *w, size_t index,
    int64_t now_ms);
/* A process is gone.  Returns how many wake-ups are due. */
size_t front_wakes_lost(struct front_wakes *w);

/* An interaction that passed the checks, until it is answered. */
struct front_case {
	struct http_request *http; /* borrowed */
	struct interaction in;
	struct reply reply;
	int64_t received_ms; /* wall clock; nginx's, where it sends that */
	int64_t until_ms;    /* nothing is begun later */
	int64_t started_us;  /* monotonic */
	int64_t answered_us;
	bool woken;   /* a worker has been woken for it */
	bool pending; /* pending.c answers it: `in` and `reply` are left */
};

struct front {
	const struct config *config;
	struct interaction_key key;
	struct db *db;		   /* NULL: it did not open */
	int64_t db_retry_ms;	   /* monotonic: when to try again */
	struct front_wakes *wakes; /* shared by all processes */
	struct node_table *nodes;  /* NULL: there is one host */
	size_t index;		   /* of this process */
	struct wake wake;
	struct front_case cases[SERVE_TOGETHER];
	size_t answered; /* cases that are still to be logged */
	struct pending pending;
	int64_t log_second; /* denied requests are logged sparingly */
	int64_t log_count;
	int64_t stale_ms; /* monotonic: the next warning of the clock */
};

/* Open all that the processes share, before the fork; ERR_CONFIG when there is
 * no usable public key.  front is large: static storage. */
int front_open(struct front *front, const struct config *config,
    struct err *err);
/* In the index-th process, after the fork.  The database need not be there
 * yet. */
void front_start(void *front, size_t index);
/* In the master: a process was killed. */
void front_lost(void *front);
void front_close(void *front);

/* For struct serve: check a request; decide and answer all; after that,
 * wake the workers. */
bool front_check(void *front, struct http_request *req, size_t index);
void front_settle(void *front, size_t count);
void front_after(void *front, bool more);
/* For struct serve: pending interactions. */
int front_events_fd(const void *front);
int64_t front_due_ms(const void *front);
void front_events(void *front);

#endif
