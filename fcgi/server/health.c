/* SPDX-License-Identifier: MIT */
#include "health.h"

#include <inttypes.h>

#include <jansson.h>

#include "report.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/protocol/frame.h"
#include "../../sandbox/protocol/lease.h"
#include "../../sandbox/protocol/sockets.h"

/* The version of the code-interpreter contract whose /health this is. */
#define CONTRACT_VERSION "0.4.4"

#ifndef INLINE_VERSION
#define INLINE_VERSION "0"
#endif

struct health {
	bool broker; /* il-sandboxd answers; else its status is empty */
	struct lease_status status;
	struct report jobs;  /* empty where there is none */
	int64_t jobs_age_ms; /* since they were so; -1: not known */
};

/* What does not answer has an empty status. */
static void
gather_broker(const struct config *config, struct health *health)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_API);
	struct err err;

	health->broker = lease_status(path, &health->status, HEALTH_WAIT_MS,
			     &err) == REFUSAL_NONE;
	if (!health->broker) {
		log_warn("health: %s", err.text);
		health->status = (struct lease_status){ .engine_age_ms = -1 };
	}
}

/* As il-fcgi has told: old news of the database is none. */
static void
gather_jobs(const struct config *config, struct health *health)
{
	struct err err;

	if (report_read(config, &health->jobs, &err) != 0) {
		log_warn("health: %s", err.text);
		health->jobs_age_ms = -1;
	} else {
		health->jobs_age_ms = clock_wall_ms() - health->jobs.written_ms;
	}
	/* The clock was set back: when it was is not known. */
	if (health->jobs_age_ms < 0) {
		health->jobs_age_ms = -1;
		health->jobs = (struct report){ 0 };
	}
	health->jobs.database = health->jobs.database == 1 &&
	    health->jobs_age_ms <= REPORT_OLD_MS;
}

/* Empty: all is well.  The first cause comes first: without the broker nobody
 * knows about the engine, and what it knows has an age. */
static void
add_message(struct buf *message, const struct health *health)
{
	const struct lease_status *status = &health->status;
	int64_t age_s = status->engine_age_ms / 1000;

	if (health->jobs_age_ms < 0 || health->jobs_age_ms > REPORT_OLD_MS)
		buf_adds(message, "il-fcgi does not tell how the database is");
	else if (!health->jobs.database)
		buf_adds(message, "the database does not answer");
	else if (!health->broker)
		buf_adds(message, "il-sandboxd does not answer");
	else if (!status->engine && status->engine_age_ms < 0)
		buf_adds(message,
		    "the Docker engine has not yet answered il-sandboxd");
	else if (!status->engine)
		buf_addf(message,
		    "the Docker engine does not answer (asked %" PRId64
		    " s ago)",
		    age_s);
	else if (!status->image)
		buf_addf(message,
		    "the sandbox image is missing (looked for %" PRId64
		    " s ago)",
		    age_s);
}

static json_t *
age_or_null(int64_t age_ms)
{
	return age_ms < 0 ? json_null() : json_integer((json_int_t)age_ms);
}

static const char *
text_or_null(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

/* All that may be told to those who may know. */
static json_t *
health_details(const struct health *h)
{
	const struct lease_status *s = &h->status;
	const char *isolation = s->isolation == ISOLATION_RUN ? "run" :
	    s->isolation == ISOLATION_CELL		      ? "cell" :
								NULL;

	return json_pack(
	    "{s:s, s:b, s:b, s:b, s:b, s:s, s:s?, s:s?, s:s?, "
	    "s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I, s:o}, s:I, s:o}",
	    "version", INLINE_VERSION, "broker", h->broker, "docker", s->engine,
	    "image", s->image, "database", h->jobs.database != 0, "image_name",
	    s->image_name, "python", text_or_null(s->python), "isolation",
	    isolation, "isolation_reason", text_or_null(s->isolation_reason),
	    "cells", "running", (json_int_t)s->cells, "leased",
	    (json_int_t)s->leased, "starting", (json_int_t)s->starting,
	    "waiting", (json_int_t)s->waiting, "jobs", "queued",
	    (json_int_t)h->jobs.queued, "running", (json_int_t)h->jobs.running,
	    "untold", (json_int_t)h->jobs.untold, "oldest_ms",
	    (json_int_t)h->jobs.oldest_ms, "age_ms",
	    age_or_null(h->jobs_age_ms), "free_bytes",
	    (json_int_t)s->free_bytes, "docker_age_ms",
	    age_or_null(s->engine_age_ms));
}

char *
health_json(const struct config *config, bool stranger)
{
	auto_buf struct buf message = BUF_INIT(256);
	struct health health = { .broker = false };
	json_auto_t *root = NULL;
	bool well;
	char *text;

	gather_broker(config, &health);
	gather_jobs(config, &health);
	add_message(&message, &health);
	well = message.len == 0;
	root = json_pack("{s:s, s:s?, s:s, s:o*}", "status",
	    well ? "ok" : "error", "message",
	    well || stranger ? NULL : buf_str(&message), "version",
	    CONTRACT_VERSION, "inline",
	    stranger ? NULL : health_details(&health));
	text = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);
	if (text == NULL) /* an image's name that is no UTF-8, or no memory */
		log_fatal(1, "cannot write the health as JSON");
	return text;
}
