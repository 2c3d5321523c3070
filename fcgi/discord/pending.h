/* SPDX-License-Identifier: MIT */
#ifndef PENDING_H
#define PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discord/interaction.h"

#include "protocol/condition.h"
#include "protocol/handover.h"

struct config;
struct db;
struct err;
struct http_request;
struct job;

/*
 * Commands without an answer, and why they have none.
 *
 * A pending interaction is one whose job is committed and whose first response
 * is delayed: a worker may have the answer in a moment, and that is the
 * response then (protocol/handover.h).  An interaction that has no answer
 * when its time is over gets its late response, mostly "thinking…".  Each takes
 * a connection of nginx's, an FCGX_Request and its row here, some 20 KiB.
 *
 * While a command cannot be answered now (protocol/condition.h), a sentence
 * stands in place of "thinking…".  /health is answered here, at once: a job
 * would wait for what it reports.
 */
#define PENDING_MOST 2048
#define PENDING_WORKERS 256 /* connections of workers at one time */

struct pending_case {
	struct http_request *http; /* owned */
	int64_t job_id;
	int64_t due_ms;	     /* monotonic */
	char *late;	     /* JSON of the response at that time; owned */
	int64_t started_us;  /* monotonic */
	int64_t received_ms; /* wall clock */
	enum interaction_type type;
	char locale[LOCALE_MAX + 1];
	char *label; /* beginning of its line in the log; owned */
};

/* The first three are borrowed, and the caller's to set. */
struct pending {
	const struct config *config;
	struct counters *counters;
	struct db **db; /* of this process; *db NULL: it does not open */

	struct pending_case *cases;
	size_t count;
	size_t most;
	int listen_fd;
	int epoll_fd;	   /* the listener and connected workers */
	size_t workers;	   /* that are connected */
	int64_t first_job; /* that this process has made; 0: none */
	char packet[FIRST_RESPONSE_SIZE];

	int64_t judged_ms;	  /* monotonic; 0: never */
	enum condition condition; /* as of then */
};

/* In the index-th process.  Where it fails no response is delayed; err says
 * why. */
int pending_open(struct pending *p, size_t index, struct err *err);
/* Send all late responses. */
void pending_close(struct pending *p);

/* Delay the response: *it and all that it owns is pending's from now on.  There
 * must be room: count < most. */
void pending_add(struct pending *p, const struct pending_case *it);

/* The time at which the next late response is due; INT64_MAX: none is. */
int64_t pending_due_ms(const struct pending *p);
/* Send the responses that workers have brought, and those that are due. */
void pending_events(struct pending *p);

/* Count an interaction by its type and its outcome; received_ms: wall clock. */
void pending_count(const struct pending *p, enum interaction_type type,
    enum chat_outcome outcome, int64_t received_ms);

/* The response in place of it->late, JSON on the heap; NULL: it->late is right.
 * The job (0: none was made) stays in the queue, and its answer edits this. */
char *pending_instead(struct pending *p, const struct pending_case *it);
/* Is a fault of ours the reason that a job is not over?  job_alone() has found
 * it, and the database is open. */
bool pending_is_fault(struct pending *p, const struct job *job);
/* The answer to /health, JSON on the heap; skew_ms: our clock is so much ahead
 * of Discord's. */
char *pending_health(const struct pending *p, int64_t skew_ms);

#endif
