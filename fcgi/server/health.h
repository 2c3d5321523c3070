/* SPDX-License-Identifier: MIT */
#ifndef HEALTH_H
#define HEALTH_H

#include <stdbool.h>

struct buf;
struct config;
struct err;

/* For the broker's answer. */
#define HEALTH_WAIT_MS 1000

/* il-fcgi's metrics for il-api, in STATE/front/metrics: families of
 * base/exposition.h.  A reader must expect any text.  ERR_UNAVAILABLE: the file
 * is old or missing, since il-fcgi is gone. */
#define HEALTH_METRICS_MAX (256 << 10)
int health_tell_metrics(const struct config *config, const struct buf *text,
    struct err *err);
int health_read_metrics(const struct config *config, struct buf *text,
    struct err *err);

/* The condition for Prometheus: inline_condition, a row for each. */
void health_add_condition(struct buf *out, const struct config *config);

/* The condition (sandbox/protocol/condition.h) for programs:
 * {"status":"ok"|"error","message":…,"version":…,"inline":{…}}; heap.
 * Strangers get the status and the version of the contract alone, and message
 * null.  NULL: it could not be written. */
char *health_json(const struct config *config, bool stranger);

#endif
