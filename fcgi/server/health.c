/* SPDX-License-Identifier: MIT */
#include "health.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/file.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/frame.h"
#include "../../sandbox/protocol/lease.h"

/* The version of the code-interpreter contract whose /health this is. */
#define CONTRACT_VERSION "0.4.4"

#define FOLDER "front"
#define TOLD FOLDER "/jobs"
#define TOLD_METRICS FOLDER "/metrics"
#define TOLD_MAX 8192
/* What is older tells of a teller that is gone. */
#define OLD_MS 60000

struct health {
	bool broker; /* il-sandboxd answers; else its status is empty */
	struct lease_status status;
	struct health_jobs jobs; /* empty where there is none */
	int64_t jobs_age_ms;	 /* since they were so; -1: not known */
};

/* The file is a "key number" for each of these, a line each, in this order. */
static const char *const keys[] = { "written_ms", "database", "queued",
	"running", "untold", "oldest_ms" };
#define KEYS (sizeof(keys) / sizeof(keys[0]))

int
health_tell(const struct config *config, const struct health_jobs *jobs,
    struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD);
	auto_free char *folder = config_state_path(config, FOLDER);
	auto_buf struct buf text = BUF_INIT(TOLD_MAX);
	const int64_t values[KEYS] = { jobs->written_ms, jobs->database,
		jobs->queued, jobs->running, jobs->untold, jobs->oldest_ms };

	for (size_t i = 0; i < KEYS; i++)
		buf_addf(&text, "%s %" PRId64 "\n", keys[i], values[i]);
	if (fd_make_dirs(folder, 0750, err) != 0)
		return -1;
	return file_write(path, text.data, text.len, false, err);
}

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

	if (stat(path, &st) != 0)
		return err_system(err, "%s", path);
	if (clock_wall_ms() - st.st_mtim.tv_sec * INT64_C(1000) > OLD_MS)
		return err_set(err, ERR_UNAVAILABLE, "%s is old", path);
	return file_read(path, text, err);
}

/* After -1 jobs holds nothing of use. */
static int
read_told(const struct config *config, struct health_jobs *jobs,
    struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD);
	auto_buf struct buf text = BUF_INIT(TOLD_MAX);
	int64_t *const values[KEYS] = { &jobs->written_ms, &jobs->database,
		&jobs->queued, &jobs->running, &jobs->untold,
		&jobs->oldest_ms };
	char *rest;

	if (file_read(path, &text, err) != 0)
		return -1;
	rest = text.data;
	for (size_t i = 0; i < KEYS; i++) {
		const char *line = strsep(&rest, "\n");
		size_t len = strlen(keys[i]);

		if (line == NULL || strncmp(line, keys[i], len) != 0 ||
		    line[len] != ' ' ||
		    !text_parse_int(line + len + 1, 0, INT64_MAX, values[i]))
			return err_set(err, ERR_INPUT, "%s: no %s", path,
			    keys[i]);
	}
	return 0;
}

/* Ask the broker, and read what il-fcgi has told of the jobs. */
static void
gather(const struct config *config, struct health *h)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_API);
	struct err err;

	*h = (struct health){ .jobs_age_ms = -1 };
	h->broker = lease_status(path, &h->status, HEALTH_WAIT_MS, &err) ==
	    REFUSAL_NONE;
	if (!h->broker) {
		log_warn("health: %s", err.text);
		h->status = (struct lease_status){ .engine_age_ms = -1 };
	}
	if (read_told(config, &h->jobs, &err) != 0)
		log_warn("health: %s", err.text);
	else
		h->jobs_age_ms = clock_wall_ms() - h->jobs.written_ms;
	/* The clock was set back: when it was is not known. */
	if (h->jobs_age_ms < 0) {
		h->jobs_age_ms = -1;
		h->jobs = (struct health_jobs){ 0 };
	}
	/* Old news of the database is none. */
	h->jobs.database = h->jobs.database == 1 && h->jobs_age_ms <= OLD_MS;
}

/* Empty: all is well.  The first cause comes first: without the broker nobody
 * knows about the engine, and what it knows has an age. */
static void
add_message(struct buf *message, const struct health *health)
{
	const struct lease_status *status = &health->status;
	int64_t age_s = status->engine_age_ms / 1000;

	if (health->jobs_age_ms < 0 || health->jobs_age_ms > OLD_MS)
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
	    s->image_name, "python", s->python[0] != '\0' ? s->python : NULL,
	    "isolation", isolation, "isolation_reason",
	    s->isolation_reason[0] != '\0' ? s->isolation_reason : NULL,
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
	struct health health;
	json_auto_t *root = NULL;
	bool well;
	char *text;

	gather(config, &health);
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
