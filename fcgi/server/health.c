/* SPDX-License-Identifier: MIT */
#include "server/health.h"

#include <stdio.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/exposition.h"
#include "base/file.h"
#include "base/log.h"
#include "protocol/condition.h"
#include "protocol/lease.h"

/* The version of the code-interpreter contract whose /health this is. */
#define CONTRACT_VERSION "0.4.4"

#define TOLD_METRICS "front/metrics"

struct health {
	struct condition_facts facts;
	struct condition_jobs jobs; /* empty where there is none */
	int64_t jobs_age_ms;	    /* since they were so; -1: not known */
};

int
health_tell_metrics(const struct config *config, const struct buf *text,
    struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD_METRICS);

	if (text->overflow)
		return err_set(err, ERR_LIMIT, "too many numbers for %s", path);
	return file_write(path, text->data, text->len, false, err);
}

int
health_read_metrics(const struct config *config, struct buf *text,
    struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD_METRICS);
	struct stat st;
	int64_t age_s;

	if (stat(path, &st) != 0)
		return err_system(err, "%s", path);
	age_s = clock_wall_ms() / 1000 - st.st_mtim.tv_sec;
	/* The clock was set back: when it was written is not known. */
	if (age_s < 0 || age_s > CONDITION_OLD_MS / 1000)
		return err_set(err, ERR_UNAVAILABLE, "%s is old", path);
	return file_read(path, text, err);
}

/* Ask the broker, and read what il-fcgi has told of the jobs. */
static void
gather(const struct config *config, struct health *h)
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

void
health_add_condition(struct buf *out, const struct config *config)
{
	const struct exposition_label state = { "state", condition_words,
		CONDITIONS };
	_Atomic int64_t is[CONDITIONS] = { 0 };
	struct condition_verdict verdict;
	struct health health;

	gather(config, &health);
	condition_judge(&health.facts, &verdict);
	is[verdict.what] = 1;
	exposition_table(out, "inline_condition", "gauge",
	    "Can a command be answered now?  1: well, or the first cause why "
	    "not.",
	    NULL, &state, is);
}

char *
health_json(const struct config *config, bool stranger)
{
	struct condition_verdict verdict;
	struct health health;
	json_auto_t *root = NULL;
	bool well;
	char *text;

	gather(config, &health);
	condition_judge(&health.facts, &verdict);
	well = verdict.what == CONDITION_WELL;
	root = json_pack("{s:s, s:s?, s:s, s:o*}", "status",
	    well ? "ok" : "error", "message",
	    well || stranger ? NULL : verdict.text, "version", CONTRACT_VERSION,
	    "inline", stranger ? NULL : health_details(&health));
	text = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);
	if (text == NULL)
		log_err("cannot write the health as JSON");
	return text;
}
