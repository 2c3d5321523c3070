/* SPDX-License-Identifier: MIT */
#ifndef HEALTH_H
#define HEALTH_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct config;
struct err;

/*
 * The state of the service for operators and for programs: what the broker
 * answers within HEALTH_WAIT_MS, and what il-fcgi has told of the jobs'
 * database, on which il-api has no right.  It tells by the file
 * STATE/front/jobs, which it replaces whole every HEALTH_TELL_MS.
 */
#define HEALTH_WAIT_MS 1000
#define HEALTH_TELL_MS 5000

struct health_jobs {
	int64_t written_ms; /* wall clock */
	int64_t database;   /* 1: it opened and answered; else the rest is 0 */
	int64_t queued;	    /* as in struct job_counts */
	int64_t running;
	int64_t untold;
	int64_t oldest_ms;
};

int health_tell(const struct config *config, const struct health_jobs *jobs,
    struct err *err);

/* Likewise what Prometheus is to be told, STATE/front/metrics: families of
 * base/exposition.h.  To read it: it may be any text, and where it is old or
 * missing that is ERR_UNAVAILABLE: who tells it is gone. */
#define HEALTH_METRICS_MAX (256 << 10)
int health_tell_metrics(const struct config *config, const struct buf *text,
    struct err *err);
int health_read_metrics(const struct config *config, struct buf *text,
    struct err *err);

/* {"status":"ok"|"error","message":…,"version":…,"inline":{…}}; heap.  For
 * strangers without what is whose: no more than the status and the version of
 * the contract, and message null. */
char *health_json(const struct config *config, bool stranger);

#endif
