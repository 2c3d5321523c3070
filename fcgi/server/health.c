#include "health.h"

#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include "report.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/protocol/frame.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/protocol/sockets.h"
#include "../../sandbox/protocol/lease.h"

/* The version of the code-interpreter contract whose /health this is. */
#define CONTRACT_VERSION "0.4.4"

#ifndef INLINE_VERSION
#define INLINE_VERSION "0"
#endif

static const char *
isolation_name(int64_t isolation)
{
	if (isolation == ISOLATION_RUN)
		return "run";
	return isolation == ISOLATION_CELL ? "cell" : NULL;
}

static void
gather_broker(const struct config *config, struct health *health)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_API);
	struct lease_status status = { .engine = false };
	struct err err;

	if (lease_status(path, &status, HEALTH_WAIT_MS, &err) != REFUSAL_NONE) {
		log_warn("health: %s", err.text);
		return;
	}
	health->broker = true;
	health->docker = status.engine;
	health->docker_age_ms = status.engine_age_ms;
	health->image = status.image;
	memcpy(health->image_name, status.image_name,
	    sizeof(health->image_name));
	memcpy(health->python, status.python, sizeof(health->python));
	memcpy(health->isolation_reason, status.isolation_reason,
	    sizeof(health->isolation_reason));
	health->isolation = isolation_name(status.isolation);
	health->cells = status.cells;
	health->leased = status.leased;
	health->starting = status.starting;
	health->waiting = status.waiting;
	health->free_bytes = status.free_bytes;
}

/* As il-fcgi has told: old news is none. */
static void
gather_jobs(const struct config *config, struct health *health)
{
	struct report report;
	struct err err;
	int64_t age_ms;

	health->jobs_age_ms = -1;
	if (report_read(config, &report, &err) != 0) {
		log_warn("health: %s", err.text);
		return;
	}
	age_ms = clock_wall_ms() - report.written_ms;
	/* The clock was set back: when it was is not known. */
	if (age_ms < 0)
		return;
	health->jobs_age_ms = age_ms;
	health->database = report.database && age_ms <= REPORT_OLD_MS;
	health->queued = report.queued;
	health->running = report.running;
	health->untold = report.untold;
	health->oldest_ms = report.oldest_ms;
}

void
health_gather(const struct config *config, struct health *health)
{
	memset(health, 0, sizeof(*health));
	health->docker_age_ms = -1;
	gather_broker(config, health);
	gather_jobs(config, health);
}

/* Empty: all is well.  The first cause comes first: without the broker nobody
 * knows about the engine, and what it knows has an age. */
static void
health_message(const struct health *health, struct buf *message)
{
	int64_t age_s = health->docker_age_ms / 1000;

	if (health->jobs_age_ms < 0 || health->jobs_age_ms > REPORT_OLD_MS)
		buf_adds(message, "il-fcgi does not tell how the database is");
	else if (!health->database)
		buf_adds(message, "the database does not answer");
	else if (!health->broker)
		buf_adds(message, "il-sandboxd does not answer");
	else if (!health->docker && health->docker_age_ms < 0)
		buf_adds(message,
		    "the Docker engine has not yet answered "
		    "il-sandboxd");
	else if (!health->docker)
		buf_addf(message,
		    "the Docker engine does not answer (asked %" PRId64
		    " s ago)",
		    age_s);
	else if (!health->image)
		buf_addf(message,
		    "the sandbox image is missing (looked for %" PRId64
		    " s ago)",
		    age_s);
}

static json_t *
health_details(const struct health *h)
{
	return json_pack(
	    "{s:s, s:b, s:b, s:b, s:b, s:s, s:s?, s:s?, s:s?, "
	    "s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I, s:o}, s:I, s:o}",
	    "version", INLINE_VERSION, "broker", h->broker, "docker", h->docker,
	    "image", h->image, "database", h->database, "image_name",
	    h->image_name, "python", h->python[0] == '\0' ? NULL : h->python,
	    "isolation", h->isolation, "isolation_reason",
	    h->isolation_reason[0] == '\0' ? NULL : h->isolation_reason,
	    "cells", "running", (json_int_t)h->cells, "leased",
	    (json_int_t)h->leased, "starting", (json_int_t)h->starting,
	    "waiting", (json_int_t)h->waiting, "jobs", "queued",
	    (json_int_t)h->queued, "running", (json_int_t)h->running, "untold",
	    (json_int_t)h->untold, "oldest_ms", (json_int_t)h->oldest_ms,
	    "age_ms",
	    h->jobs_age_ms < 0 ? json_null() :
				 json_integer((json_int_t)h->jobs_age_ms),
	    "free_bytes", (json_int_t)h->free_bytes, "docker_age_ms",
	    h->docker_age_ms < 0 ? json_null() :
				   json_integer((json_int_t)h->docker_age_ms));
}

char *
health_json(const struct health *health, bool stranger)
{
	auto_buf struct buf message = BUF_INIT(256);
	json_auto_t *root = NULL;
	char *text;

	health_message(health, &message);
	root = json_pack("{s:s, s:s?, s:s, s:o*}", "status",
	    message.len == 0 ? "ok" : "error", "message",
	    message.len == 0 || stranger ? NULL : buf_str(&message), "version",
	    CONTRACT_VERSION, "inline",
	    stranger ? NULL : health_details(health));
	text = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);

	if (text == NULL) /* an image's name that is no UTF-8, or no memory */
		log_fatal(1, "cannot write the health as JSON");
	return text;
}
