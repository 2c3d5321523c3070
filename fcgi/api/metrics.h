/* SPDX-License-Identifier: MIT */
#ifndef METRICS_H
#define METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/conversation.h"
#include "protocol/lease.h"

struct buf;
struct err;

/*
 * Counters and gauges for Prometheus.  The counters lie in memory that is
 * shared with the processes forked after metrics_open(), and only grow: they
 * need no lock, and a process that dies leaves them whole.  Each process has
 * gauges of its own, which end with it.
 */
#define METRICS_ROUTES_MAX 64

struct metrics {
	struct metrics_shared *shared;
	const char *const *routes; /* borrowed; "/v1/files/{file_id}" */
};

/* Kind of a run. */
enum api_kind {
	API_EVAL,
	API_EXECUTE,
	API_STREAM,
	API_BASH,
	API_PISTON,
	API_CONNECT, /* a run of Piston's WebSocket */
	API_LIBRECHAT,
	API_MCP,
	API_KINDS,
};

/* The list of routes ends with NULL and is borrowed.  Equal names share the
 * counters of the first. */
int metrics_open(struct metrics *m, const char *const *routes, struct err *err);

/* A request was answered; status 0: its client was gone, which counts as 499.
 * route: its index in the list. */
void metrics_request(struct metrics *m, size_t route, int status,
    int64_t duration_us, int64_t bytes_in, int64_t bytes_out);
/* A request waited so long until a process accepted it. */
void metrics_queued(struct metrics *m, int64_t waited_us);
/* The broker's answer to a request for a cell. */
void metrics_lease(struct metrics *m, enum refusal outcome);
/* A run ended.  The reason and the two times count for RUN_RESULT alone. */
void metrics_run(struct metrics *m, enum api_kind kind, enum run_end end,
    enum run_reason reason, int64_t duration_us, int64_t waited_us);

/* Gauges, which change by +1 and -1. */
enum metrics_gauge {
	METRICS_REQUESTS, /* being answered */
	METRICS_RUNNING,
	METRICS_WAITING, /* for a cell */
	METRICS_GAUGES,
};
void metrics_change(struct metrics *m, enum metrics_gauge gauge, int64_t by);

/* Metrics of other programs; NULL: that program gave none. */
struct metrics_others {
	const struct buf *broker;
	const struct buf *front;
};
/* Append all metrics, with the file store's usage and quota. */
void metrics_add(struct buf *out, const struct metrics *m,
    const struct metrics_others *others, int64_t bytes, int64_t files,
    int64_t quota);

#endif
