/* SPDX-License-Identifier: MIT */
#ifndef HEALTH_H
#define HEALTH_H

#include <stdbool.h>

struct config;

/*
 * The state of the service for operators and for programs.  It asks the broker
 * (at most HEALTH_WAIT_MS) and reads what il-fcgi has told of the jobs.
 */
#define HEALTH_WAIT_MS 1000

/* {"status":"ok"|"error","message":…,"version":…,"inline":{…}}; heap.  For
 * strangers without what is whose: no more than the status and the version of
 * the contract, and message null. */
char *health_json(const struct config *config, bool stranger);

#endif
