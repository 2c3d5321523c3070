#ifndef HEALTH_H
#define HEALTH_H

#include <stdbool.h>
#include <stdint.h>

struct config;

/*
 * The state of the service for operators and for programs.  Gathering asks the
 * broker (at most HEALTH_WAIT_MS) and reads what il-fcgi has told of the jobs;
 * rendering is pure.
 */
#define HEALTH_WAIT_MS 1000

struct health {
	bool broker;	       /* il-sandboxd answers */
	bool docker;	       /* the engine answers */
	int64_t docker_age_ms; /* since that was found out; -1: not yet */
	bool image;	       /* the image is there */
	bool database;	       /* it answered il-fcgi, a moment ago */
	char image_name[256];
	char python[32]; /* "" while no cell has told yet */
	/* Of the APIs' runs: "run", "cell", NULL while no cell has told yet;
	 * and why it is no more. */
	const char *isolation;
	char isolation_reason[128];
	int64_t cells; /* containers that run */
	int64_t leased;
	int64_t starting;
	int64_t waiting; /* lease requests in the broker's queue */
	int64_t free_bytes;
	int64_t queued; /* jobs */
	int64_t running;
	int64_t untold;
	int64_t oldest_ms;
	int64_t jobs_age_ms; /* since these four were so; -1: not known */
};

void health_gather(const struct config *config, struct health *health);
/* {"status":"ok"|"error","message":…,"version":…,"inline":{…}}; heap.  For
 * strangers without what is whose: no more than the status and the version of
 * the contract, and message null. */
char *health_json(const struct health *health, bool stranger);

#endif
