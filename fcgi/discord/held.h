/* SPDX-License-Identifier: MIT */
#ifndef HELD_H
#define HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discord/interaction.h"
#include "protocol/first_response.h"

struct chat_metrics;
struct config;
struct err;
struct http_request;

/*
 * Interactions whose job is committed and whose first response is held back: a
 * worker may have the answer in a moment, which is the response then
 * (protocol/first_response.h).  Whatever has no answer when its time is over
 * gets what it would have got at once, mostly "thinking…".  One is a connection
 * of nginx's, an FCGX_Request and its row here, some 20 KiB; where as many are
 * held as may be, the next one is not.
 */
#define HELD_MOST 2048
#define HELD_WORKERS 256 /* connections of workers at one time */

struct held_case {
	struct http_request *http; /* owned */
	int64_t job_id;
	int64_t due_ms;	     /* monotonic */
	char *late;	     /* JSON of the response at that time; owned */
	int64_t started_us;  /* monotonic */
	int64_t received_ms; /* wall clock */
	enum interaction_type type;
	char locale[LOCALE_MAX + 1];
	char *label; /* how its line in the log begins; owned */
};

struct held {
	struct chat_metrics *metrics; /* borrowed */
	/* Asked when one is due: JSON on the heap that is said instead of its
	 * late response, or NULL. */
	char *(*instead)(void *arg, const struct held_case *it);
	void *instead_arg;
	struct held_case *cases;
	size_t count;
	size_t most;
	int listen_fd;
	int epoll_fd;	   /* the listener and the workers that are connected */
	size_t workers;	   /* these */
	int64_t first_job; /* of this process's jobs; 0: it has made none */
	char packet[FIRST_RESPONSE_SIZE];
};

/* In the index-th process.  Where it fails nothing is held; err says why. */
int held_open(struct held *held, const struct config *config, size_t index,
    struct err *err);
/* All that are held get their late response. */
void held_close(struct held *held);

/* A job was made, and is held or answered at once. */
void held_note(struct held *held, int64_t job_id);
bool held_has_room(const struct held *held);
/* Hold it: *it and all that it owns is held's from now on. */
void held_add(struct held *held, const struct held_case *it);

/* When the next one is due; INT64_MAX: none is held. */
int64_t held_due_ms(const struct held *held);
/* Give the responses that workers have brought, and those that are due. */
void held_events(struct held *held);

#endif
