/* SPDX-License-Identifier: MIT */
#ifndef HEALTH_H
#define HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/condition.h"

struct config;

/* For the broker's answer. */
#define HEALTH_WAIT_MS 1000

/* How the service is: sandbox/protocol/condition.h. */
struct health {
	struct condition_facts facts;
	struct condition_verdict verdict;
	struct condition_jobs jobs; /* empty where there is none */
	int64_t jobs_age_ms;	    /* since they were so; -1: not known */
};

/* Ask the broker, and read what il-fcgi has reported of the jobs. */
void health_gather(struct health *h, const struct config *config);

/* The condition for programs:
 * {"status":"ok"|"error","message":…,"version":…,"inline":{…}}; heap.
 * Strangers get the status and the version of the contract alone, and message
 * null.  NULL: it could not be written. */
char *health_json(const struct config *config, bool stranger);

#endif
