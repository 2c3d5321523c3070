#ifndef METRICS_H
#define METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "../../sandbox/protocol/cell.h"
#include "../../sandbox/protocol/lease.h"

struct buf;
struct err;

/*
 * What is counted, for Prometheus.  The counters lie in memory that is shared
 * with the processes forked after metrics_open(), and are only ever added to:
 * no lock, and a process that dies leaves them whole.  What goes up and down is
 * kept by process, so that it goes with one that dies.
 */
#define METRICS_ROUTES_MAX 32
#define METRICS_APIS_MAX 8

struct metrics_shared;

struct metrics {
	struct metrics_shared *shared;
	const char *const *routes; /* borrowed; "/v1/files/{file_id}" */
	size_t route_count;
	const char *const *apis; /* of runs: "eval", "execute", … */
	size_t api_count;
};

/* The lists end with NULL and are kept; a request of no route is told as the
 * last one, "other".  After -1 there is nothing to close. */
int metrics_open(struct metrics *m, const char *const *routes,
    const char *const *apis, struct err *err);
void metrics_close(struct metrics *m);

/* A request was answered; status 0: its client was gone, which is told as 499.
 * route: its place in the list, or anything beyond. */
void metrics_request(struct metrics *m, size_t route, int status,
    int64_t duration_us, int64_t bytes_in, int64_t bytes_out);
/* So long it had waited for one of us to take it. */
void metrics_queued(struct metrics *m, int64_t waited_us);
/* What the broker answered to whoever asked for a cell. */
void metrics_lease(struct metrics *m, enum refusal outcome);
/* A run ended so; how long it had waited for its cell. */
void metrics_run(struct metrics *m, size_t api, enum run_reason reason,
    int64_t duration_us, int64_t waited_us);
/* There was no end of a run to tell. */
enum metrics_failure {
	METRICS_REFUSED, /* there was no cell */
	METRICS_LOST,	 /* its cell broke off */
	METRICS_GONE,	 /* its client hung up */
	METRICS_FAILURES,
};
void metrics_failed(struct metrics *m, size_t api,
    enum metrics_failure failure);
/* What is going on now: +1 and -1. */
enum metrics_gauge {
	METRICS_REQUESTS, /* being answered */
	METRICS_RUNNING,
	METRICS_WAITING, /* for a cell */
	METRICS_SESSIONS,
	METRICS_GAUGES,
};
void metrics_change(struct metrics *m, enum metrics_gauge gauge, int64_t by);

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
/* Append all of it; status NULL: the broker does not answer. */
void metrics_add(struct buf *out, const struct metrics *m,
    const struct lease_status *status);
/* And what the file store holds. */
void metrics_add_stored(struct buf *out, int64_t bytes, int64_t files,
    int64_t quota);

#endif
