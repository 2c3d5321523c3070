/* SPDX-License-Identifier: MIT */
#ifndef METRICS_H
#define METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/cell.h"
#include "protocol/counters.h"
#include "protocol/lease.h"

struct buf;
struct config;
struct err;
struct filestore;
struct health;

/*
 * What il-api counts, and the text of /metrics, in which the counters of all
 * programs stand (protocol/counters.h).  Each child of il-api has gauges of its
 * own; those of one that is killed count until the next one takes its place.
 */
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Gauges, which change by +1 and -1. */
enum metrics_gauge {
	METRICS_REQUESTS, /* being answered */
	METRICS_RUNNING,
	METRICS_WAITING, /* for a cell */
	METRICS_GAUGES,
};
struct metrics_gauges {
	_Atomic int64_t of[METRICS_GAUGES];
};

struct metrics {
	struct counters *counters;
	struct metrics_gauges *gauges; /* of each child, in shared memory */
	struct metrics_gauges *own;    /* NULL: not counted */
	const char *const *routes;     /* borrowed; "/v1/files/{file_id}" */
};

/* The list of routes ends with NULL and is borrowed.  Equal names share the
 * counters of the first. */
int metrics_open(struct metrics *m, const struct config *config,
    const char *const *routes, struct err *err);

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

/* In a new child: what the one of this index before it left does not count. */
void metrics_begin(struct metrics *m, size_t index);
void metrics_change(struct metrics *m, enum metrics_gauge gauge, int64_t by);

/* Append all families.  health says whether il-sandboxd and il-fcgi answer;
 * without an answer their families are left out. */
void metrics_add(struct buf *out, const struct metrics *m,
    const struct config *config, const struct health *health,
    const struct filestore *store);

#endif
