/* SPDX-License-Identifier: MIT */
#include "server/health.h"

#include <jansson.h>

#include "base/basics.h"
#include "base/config.h"
#include "protocol/lease.h"

/* The version of the code-interpreter contract whose /health this is. */
#define CONTRACT_VERSION "0.4.4"

void
health_gather(struct health *h, const struct config *config)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_API);
	struct condition_facts *facts = &h->facts;
	struct err err;

	condition_look(facts, config);
	facts->broker = lease_status(path, &facts->status, HEALTH_WAIT_MS,
			    &err) == REFUSAL_NONE;
	if (!facts->broker) {
		log_warn("health: %s", err.text);
		facts->status = (struct lease_status){ .engine_age_ms = -1 };
	}
	h->jobs_age_ms = condition_read_jobs(config, &h->jobs);
	facts->front = h->jobs_age_ms >= 0 &&
	    h->jobs_age_ms <= CONDITION_OLD_MS;
	facts->database = h->jobs.database == 1;
	facts->oldest_ms = h->jobs.oldest_ms;
	condition_judge(facts, &h->verdict);
}

static json_t *
age_or_null(int64_t age_ms)
{
	return age_ms < 0 ? json_null() : json_integer((json_int_t)age_ms);
}

/* All that may be told to those who may know. */
static json_t *
health_details(const struct health *h)
{
	const struct lease_status *s = &h->facts.status;
	const char *isolation = s->isolation == ISOLATION_RUN ? "run" :
	    s->isolation == ISOLATION_CELL		      ? "cell" :
								NULL;

	return json_pack("{s:s, s:b, s:b, s:b, s:b, s:s, s:s?, s:s?, s:s?, "
			 "s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I, s:o}, "
			 "s:{s:i, s:i}, s:I, s:o}",
	    "version", INLINE_VERSION, "broker", h->facts.broker, "docker",
	    s->engine, "image", s->image, "database", h->jobs.database != 0,
	    "image_name", s->image_name, "python",
	    s->python[0] != '\0' ? s->python : NULL, "isolation", isolation,
	    "isolation_reason",
	    s->isolation_reason[0] != '\0' ? s->isolation_reason : NULL,
	    "cells", "running", (json_int_t)s->cells, "leased",
	    (json_int_t)s->leased, "starting", (json_int_t)s->starting,
	    "waiting", (json_int_t)s->waiting, "jobs", "queued",
	    (json_int_t)h->jobs.queued, "running", (json_int_t)h->jobs.running,
	    "untold", (json_int_t)h->jobs.untold, "oldest_ms",
	    (json_int_t)h->jobs.oldest_ms, "age_ms",
	    age_or_null(h->jobs_age_ms), "workers", "alive",
	    h->facts.workers.alive, "moving", h->facts.workers.moving,
	    "free_bytes", (json_int_t)s->free_bytes, "docker_age_ms",
	    age_or_null(s->engine_age_ms));
}

char *
health_json(const struct config *config, bool stranger)
{
	struct health health;
	json_auto_t *root = NULL;
	bool well;
	char *text;

	health_gather(&health, config);
	well = health.verdict.what == CONDITION_WELL;
	root = json_pack("{s:s, s:s?, s:s, s:o*}", "status",
	    well ? "ok" : "error", "message",
	    well || stranger ? NULL : health.verdict.text, "version",
	    CONTRACT_VERSION, "inline",
	    stranger ? NULL : health_details(&health));
	text = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);
	if (text == NULL)
		log_err("cannot write the health as JSON");
	return text;
}
