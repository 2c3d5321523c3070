/* SPDX-License-Identifier: MIT */
#include "protocol/condition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

#define FOLDER "front"
#define TOLD FOLDER "/jobs"
#define TOLD_MAX 8192

const char *const condition_words[CONDITIONS] = {
	[CONDITION_WELL] = "well",
	[CONDITION_FRONT] = "front",
	[CONDITION_API] = "api",
	[CONDITION_DATABASE] = "database",
	[CONDITION_BROKER] = "broker",
	[CONDITION_ENGINE] = "engine",
	[CONDITION_STARTS] = "starts",
	[CONDITION_IMAGE] = "image",
	[CONDITION_WORKERS] = "workers",
	[CONDITION_STILL] = "still",
	[CONDITION_QUEUE] = "queue",
	[CONDITION_DISK] = "disk",
};

void
condition_look(struct condition_facts *facts, const struct config *config)
{
	auto_buf struct buf still = BUF_INIT(sizeof(facts->still) - 1);

	*facts = (struct condition_facts){
		.front = true,
		.api = true,
		.database = true,
		.broker = true,
		.quota = config->quota,
	};
	pulse_look(config, &facts->workers, &still);
	(void)snprintf(facts->still, sizeof(facts->still), "%s",
	    still.overflow ? "" : buf_str(&still));
}

/* ---- the verdict ---- */

static void __attribute__((format(printf, 4, 5)))
find(struct condition_verdict *v, enum condition what, const char *mend,
    const char *fmt, ...)
{
	va_list ap;

	v->what = what;
	(void)snprintf(v->mend, sizeof(v->mend), "%s", mend);
	va_start(ap, fmt);
	(void)vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
	text_clean_array(v->text, sizeof(v->text));
}

#define RESTART_ENGINE \
	"systemctl restart docker (an engine of its own in a container: " \
	"restart that container)"

static void
judge_starts(const struct condition_facts *facts, struct condition_verdict *v)
{
	static const char mend[] = RESTART_ENGINE
	    ", and look at il-sandboxd's log";
	const struct lease_status *s = &facts->status;

	if (s->start_pending_ms > CONDITION_START_MS)
		find(v, CONDITION_STARTS, mend,
		    "the Docker engine answers, and has been starting a "
		    "container for %" PRId64 " s",
		    s->start_pending_ms / 1000);
	else if (s->start_failures > 0)
		find(v, CONDITION_STARTS, mend,
		    "the Docker engine answers, and starts no container "
		    "(%" PRId64 " in a row have failed): %s",
		    s->start_failures, s->trouble);
}

/* What the broker knows has an age.  A broker that has just begun has not yet
 * looked: it does so within seconds, and nothing is wrong until then. */
static void
judge_engine(const struct condition_facts *facts, struct condition_verdict *v)
{
	const struct lease_status *s = &facts->status;
	int64_t age_s = s->engine_age_ms / 1000;

	if (!facts->broker)
		find(v, CONDITION_BROKER, CONDITION_START_ALL,
		    "il-sandboxd does not answer");
	else if (s->engine_age_ms < 0)
		judge_starts(facts, v);
	else if (!s->engine)
		find(v, CONDITION_ENGINE, RESTART_ENGINE,
		    "the Docker engine does not answer (asked %" PRId64
		    " s ago)",
		    age_s);
	else if (!s->image)
		find(v, CONDITION_IMAGE,
		    "ilctl doctor names it, and how it is had",
		    "the sandbox image is missing (looked for %" PRId64
		    " s ago)",
		    age_s);
	else
		judge_starts(facts, v);
}

/* Both `ilctl run` and systemd start a worker again that was killed. */
static void
judge_workers(const struct condition_facts *facts, struct condition_verdict *v)
{
	char mend[sizeof(facts->still) + sizeof("kill -KILL")];

	if (facts->workers.alive == 0) {
		find(v, CONDITION_WORKERS, CONDITION_START_ALL,
		    "no worker runs");
	} else if (facts->workers.moving == 0) {
		(void)snprintf(mend, sizeof(mend), "kill -KILL%s",
		    facts->still);
		find(v, CONDITION_STILL,
		    *facts->still != '\0' ? mend : "ilctl doctor",
		    "none of the %d workers moves: they are stopped, or hang",
		    facts->workers.alive);
	} else if (facts->oldest_ms >= CONDITION_QUEUE_MS) {
		find(v, CONDITION_QUEUE, "ilctl top",
		    "the oldest command waits for %" PRId64 " s",
		    facts->oldest_ms / 1000);
	}
}

void
condition_judge(const struct condition_facts *facts,
    struct condition_verdict *v)
{
	*v = (struct condition_verdict){ .what = CONDITION_WELL };
	if (!facts->front)
		find(v, CONDITION_FRONT, CONDITION_START_ALL,
		    "il-fcgi does not answer");
	else if (!facts->api)
		find(v, CONDITION_API, CONDITION_START_ALL,
		    "il-api does not answer");
	else if (!facts->database)
		find(v, CONDITION_DATABASE, "ilctl doctor",
		    "the database does not answer");
	if (v->what == CONDITION_WELL)
		judge_engine(facts, v);
	if (v->what == CONDITION_WELL)
		judge_workers(facts, v);
	/* a broker that could not look tells no floor */
	if (v->what == CONDITION_WELL && facts->status.floor > 0 &&
	    lease_status_room(&facts->status) < facts->quota)
		find(v, CONDITION_DISK, "free some space, or ilctl expire",
		    "the disk has %s for more: not enough for one sandbox "
		    "more to be written to",
		    text_size(lease_status_room(&facts->status)).text);
}

/* ---- what il-fcgi tells ---- */

/* The file has a line "key number" for each of these, in this order. */
static const char *const keys[] = { "written_ms", "database", "queued",
	"running", "untold", "oldest_ms" };
#define KEYS (sizeof(keys) / sizeof(keys[0]))

int
condition_tell_jobs(const struct config *config,
    const struct condition_jobs *jobs, struct err *err)
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

static int
parse_jobs(const char *path, char *text, struct condition_jobs *jobs,
    struct err *err)
{
	int64_t *const values[KEYS] = { &jobs->written_ms, &jobs->database,
		&jobs->queued, &jobs->running, &jobs->untold,
		&jobs->oldest_ms };

	for (size_t i = 0; i < KEYS; i++) {
		const char *line = strsep(&text, "\n");
		size_t len = strlen(keys[i]);

		if (line == NULL || strncmp(line, keys[i], len) != 0 ||
		    line[len] != ' ' ||
		    !text_parse_int(line + len + 1, 0, INT64_MAX, values[i]))
			return err_set(err, ERR_INPUT, "%s: no %s", path,
			    keys[i]);
	}
	return 0;
}

int64_t
condition_read_jobs(const struct config *config, struct condition_jobs *jobs)
{
	auto_free char *path = config_state_path(config, TOLD);
	auto_buf struct buf text = BUF_INIT(TOLD_MAX);
	struct err err = { 0 };
	int64_t age_ms = -1;

	*jobs = (struct condition_jobs){ 0 };
	if (file_read(path, &text, &err) != 0 ||
	    parse_jobs(path, text.data, jobs, &err) != 0)
		log_warn("jobs: %s", err.text);
	else
		age_ms = clock_wall_ms() - jobs->written_ms;
	/* The clock was set back: when it was is not known. */
	if (age_ms < 0) {
		age_ms = -1;
		*jobs = (struct condition_jobs){ 0 };
	}
	/* Old news of the database is none. */
	jobs->database = jobs->database == 1 && age_ms <= CONDITION_OLD_MS;
	return age_ms;
}
