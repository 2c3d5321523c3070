/* SPDX-License-Identifier: MIT */
#include "protocol/condition.h"

#include <inttypes.h>
#include <stdatomic.h>
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
#include "base/shared_file.h"
#include "base/text.h"

#define FOLDER "front"
#define TOLD FOLDER "/jobs"
#define TOLD_MAX 8192

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
condition_set(struct condition_verdict *v, enum condition what,
    const char *mend, const char *fmt, ...)
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
		condition_set(v, CONDITION_STARTS, mend,
		    "the Docker engine answers, and has been starting a "
		    "container for %" PRId64 " s",
		    s->start_pending_ms / 1000);
	else if (s->start_failures > 0)
		condition_set(v, CONDITION_STARTS, mend,
		    "the Docker engine answers, and starts no container "
		    "(%" PRId64 " in a row have failed): %s",
		    s->start_failures, s->trouble);
}

/* The broker's knowledge has an age.  A broker that has just begun asks the
 * engine within seconds, and nothing is wrong until then. */
static void
judge_engine(const struct condition_facts *facts, struct condition_verdict *v)
{
	const struct lease_status *s = &facts->status;
	int64_t age_s = s->engine_age_ms / 1000;

	if (!facts->broker)
		condition_set(v, CONDITION_BROKER, CONDITION_START_ALL,
		    "il-sandboxd does not answer");
	else if (s->engine_age_ms < 0)
		judge_starts(facts, v);
	else if (!s->engine)
		condition_set(v, CONDITION_ENGINE, RESTART_ENGINE,
		    "the Docker engine does not answer (asked %" PRId64
		    " s ago)",
		    age_s);
	else if (!s->image)
		condition_set(v, CONDITION_IMAGE,
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
		condition_set(v, CONDITION_WORKERS, CONDITION_START_ALL,
		    "no worker runs");
	} else if (facts->workers.moving == 0) {
		(void)snprintf(mend, sizeof(mend), "kill -KILL%s",
		    facts->still);
		condition_set(v, CONDITION_STILL,
		    *facts->still != '\0' ? mend : "ilctl doctor",
		    "none of the %d workers moves: they are stopped, or hang",
		    facts->workers.alive);
	} else if (facts->oldest_ms >= CONDITION_QUEUE_MS) {
		condition_set(v, CONDITION_QUEUE, "ilctl top",
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
		condition_set(v, CONDITION_FRONT, CONDITION_START_ALL,
		    "il-fcgi does not answer");
	else if (!facts->api)
		condition_set(v, CONDITION_API, CONDITION_START_ALL,
		    "il-api does not answer");
	else if (!facts->database)
		condition_set(v, CONDITION_DATABASE, "ilctl doctor",
		    "the database does not answer");
	if (v->what == CONDITION_WELL)
		judge_engine(facts, v);
	if (v->what == CONDITION_WELL)
		judge_workers(facts, v);
	/* a broker that could not look tells no floor */
	if (v->what == CONDITION_WELL && facts->status.floor > 0 &&
	    lease_status_room(&facts->status) < facts->quota)
		condition_set(v, CONDITION_DISK,
		    "free some space, or ilctl expire",
		    "the disk has %s for more: not enough for one sandbox "
		    "more to be written to",
		    text_size(lease_status_room(&facts->status)).text);
}

/* ---- the report of il-fcgi ---- */

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

/* ---- whether the workers move ---- */

/* One of another version may have other places. */
#define PULSE_FILE "worker/pulse-" INLINE_VERSION

struct pulse {
	struct {
		_Atomic int64_t writer; /* 0: no worker has the slot */
		_Atomic int64_t beat_ms;
		_Atomic int64_t due_ms;
		_Atomic int64_t rests;
	} slots[PULSE_SLOTS];
};

struct pulse *
pulse_open(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, PULSE_FILE);

	return shared_file_open(path, sizeof(struct pulse), err);
}

void
pulse_beat(struct pulse *pulse, int64_t slot, int64_t within_ms, bool rests)
{
	int64_t now_ms = clock_monotonic_ms();

	if (pulse == NULL || slot < 0 || slot >= PULSE_SLOTS)
		return;
	pulse->slots[slot].beat_ms = now_ms;
	pulse->slots[slot].due_ms = now_ms + within_ms + PULSE_MORE_MS;
	pulse->slots[slot].rests = rests;
	pulse->slots[slot].writer = shared_file_writer();
}

void
pulse_close(struct pulse *pulse, int64_t slot)
{
	if (pulse != NULL && slot >= 0 && slot < PULSE_SLOTS)
		pulse->slots[slot].writer = 0;
	shared_file_close(pulse, sizeof(*pulse));
}

void
pulse_look(const struct config *config, struct pulse_count *count,
    struct buf *still)
{
	auto_free char *path = config_state_path(config, PULSE_FILE);
	struct err err = { 0 };
	const struct pulse *pulse = shared_file_read(path, sizeof(*pulse),
	    &err);

	*count = (struct pulse_count){ .heard_ms = -1 };
	if (pulse == NULL) {
		log_debug("pulse: %s", err.text);
		return;
	}
	for (size_t i = 0; i < PULSE_SLOTS; i++) {
		int64_t writer = pulse->slots[i].writer;
		int64_t beat_ms = pulse->slots[i].beat_ms;
		int64_t due_ms = pulse->slots[i].due_ms;
		int64_t now_ms = clock_monotonic_ms();

		/* a beat that is yet to come is of the last boot */
		if (!shared_file_writer_is_there(writer) || beat_ms > now_ms)
			continue;
		count->alive++;
		if (now_ms > due_ms) {
			if (still != NULL)
				buf_addf(still, " %d",
				    (int)shared_file_writer_pid(writer));
			continue;
		}
		count->moving++;
		if (pulse->slots[i].rests == 0)
			beat_ms = INT64_MAX;
		if (beat_ms > count->heard_ms)
			count->heard_ms = beat_ms;
	}
	shared_file_close(pulse, sizeof(*pulse));
}
