/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "protocol/condition.h"
#include "protocol/counters.h"
#include "protocol/frame.h"

#define MIB (INT64_C(1) << 20)

static struct condition_facts
well(void)
{
	return (struct condition_facts){
		.front = true,
		.api = true,
		.database = true,
		.broker = true,
		.status = { .engine = true,
		    .image = true,
		    .free_bytes = 9000 * MIB,
		    .floor = 1000 * MIB,
		    .promised = 1000 * MIB },
		.workers = { .alive = 4, .moving = 1 },
		.oldest_ms = CONDITION_QUEUE_MS - 1,
		.quota = 256 * MIB,
	};
}

/* The facts lead to this condition, with this text and this mend. */
static void
finds(const struct condition_facts *facts, enum condition what,
    const char *text, const char *mend)
{
	struct condition_verdict v;

	condition_judge(facts, &v);
	is_str(condition_words[v.what], condition_words[what],
	    "the first cause");
	ok(strstr(v.text, text) != NULL, text);
	ok(strstr(v.mend, mend) != NULL, mend);
}

/* Each thing alone, and all of them at once: the first one is told. */
static void
test_judge(void)
{
	struct condition_facts facts = well();

	finds(&facts, CONDITION_WELL, "", "");
	facts.status.start_pending_ms = CONDITION_START_MS;
	finds(&facts, CONDITION_WELL, "", "");
	facts.status.free_bytes = 2255 * MIB;
	finds(&facts, CONDITION_DISK, "255 MiB for more", "ilctl expire");
	facts.oldest_ms = CONDITION_QUEUE_MS;
	finds(&facts, CONDITION_QUEUE, "waits for 10 s", "ilctl top");
	facts.workers.moving = 0;
	memcpy(facts.still, " 17 18", sizeof(" 17 18"));
	finds(&facts, CONDITION_STILL, "none of the 4", "kill -KILL 17 18");
	facts.workers.alive = 0;
	finds(&facts, CONDITION_WORKERS, "no worker", "make run");
	facts.status.start_failures = 2;
	memcpy(facts.status.trouble, "slow\xc3", sizeof("slow\xc3"));
	finds(&facts, CONDITION_STARTS, "failed): slow\xef\xbf\xbd", "docker");
	memcpy(facts.status.trouble, "slow", sizeof("slow"));
	finds(&facts, CONDITION_STARTS, "(2 in a row have failed): slow",
	    "restart docker");
	facts.status.start_pending_ms = CONDITION_START_MS + 1;
	finds(&facts, CONDITION_STARTS, "starting a container for 30 s",
	    "restart docker");
	facts.status.image = false;
	finds(&facts, CONDITION_IMAGE, "image is missing", "doctor");
	facts.status.engine = false;
	facts.status.engine_age_ms = 7999;
	finds(&facts, CONDITION_ENGINE, "(asked 7 s ago)", "restart docker");
	facts.broker = false;
	finds(&facts, CONDITION_BROKER, "il-sandboxd", "make run");
	facts.database = false;
	finds(&facts, CONDITION_DATABASE, "database", "doctor");
	facts.api = false;
	finds(&facts, CONDITION_API, "il-api", "make run");
	facts.front = false;
	finds(&facts, CONDITION_FRONT, "il-fcgi", "make run");
	facts = well();
	facts.status.engine = facts.status.image = false;
	facts.status.engine_age_ms = -1;
	finds(&facts, CONDITION_WELL, "", ""); /* it has not yet looked */
	facts.workers.alive = 0;
	finds(&facts, CONDITION_WORKERS, "no worker", "make run");
}

static void
count(const struct config *config, struct pulse_count *found, char *still)
{
	auto_buf struct buf buf = BUF_INIT(100);

	pulse_look(config, found, &buf);
	(void)snprintf(still, 100, "%s", buf_str(&buf));
}

/* As another worker would have left it: who, when, by when, if it rests. */
static void
leave(const struct config *config, int slot, int field, int64_t value)
{
	auto_free char *path = config_state_path(config,
	    "worker/pulse-" INLINE_VERSION);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	ok(pwrite(fd, &value, sizeof(value),
	       (slot * 4 + field) * (off_t)sizeof(value)) == sizeof(value),
	    "noted");
}

/* A worker that is there, one that lets its time pass, one that was killed. */
static void
test_pulse(const struct config *config)
{
	struct err err = { 0 };
	struct pulse_count found;
	struct pulse *pulse;
	char still[100];
	char own[32];
	pid_t pid;

	count(config, &found, still);
	is_int(found.alive, 0, "no file: no worker");
	pulse = pulse_open(config, &err);
	ok(pulse != NULL, "a file is made");
	pulse_beat(NULL, 0, 1000, true);
	pulse_beat(pulse, 1, 1000, true);
	count(config, &found, still);
	ok(found.alive == 1 && found.moving == 1 && *still == '\0',
	    "one that comes again in time moves");
	pulse_beat(pulse, 1, -PULSE_MORE_MS - 1, true);
	count(config, &found, still);
	(void)snprintf(own, sizeof(own), " %d", (int)getpid());
	ok(found.alive == 1 && found.moving == 0,
	    "one that does not, does not");
	is_str(still, own, "and is named");
	pid = fork();
	if (pid == 0) {
		pulse_beat(pulse, 2, 60000, false);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	pulse_beat(pulse, 1, 0, true);
	count(config, &found, still);
	ok(found.alive == 1 && found.moving == 1,
	    "one that was killed is not there, whatever it had promised");
	ok(found.heard_ms <= clock_monotonic_ms() && found.heard_ms > 0,
	    "one that rests knows what it was woken for before");
	pulse_beat(pulse, 1, 0, false);
	count(config, &found, still);
	ok(found.heard_ms == INT64_MAX, "one that is busy will look");
	pulse_beat(pulse, 1, -PULSE_MORE_MS - 1, true);
	leave(config, 1, 1, INT64_MAX);
	count(config, &found, still);
	ok(found.alive == 0 && *still == '\0',
	    "a beat of the last boot is nobody's, and nobody is named");
	pulse_beat(pulse, 1, -PULSE_MORE_MS - 1, true);
	leave(config, 1, 0, INT64_C(1) << 22 | getpid());
	count(config, &found, still);
	ok(found.alive == 0 && *still == '\0',
	    "nor is one of a process whose number another has now");
	pulse_close(pulse, 1);
	count(config, &found, still);
	is_int(found.alive, 0, "one that has ended is not there");
}

static void
test_status(const struct config *config)
{
	struct err err = { 0 };
	struct lease_status status;
	auto_free char *path = config_state_path(config,
	    "broker/status-" INLINE_VERSION);
	struct lease_status_file *file;
	struct frame frame;
	pid_t pid;

	ok(lease_status_read(config, &status, &err) < 0,
	    "no broker has told anything");
	file = lease_status_open(config, &err);
	ok(file != NULL, "it makes the file");
	ok(lease_status_read(config, &status, &err) < 0,
	    "it has told nothing yet");
	frame_start(&frame, FRAME_STATUS_IS);
	frame_add_int(&frame, TAG_ENGINE, 1);
	frame_add_int(&frame, TAG_START_FAILURES, 3);
	frame_add_text(&frame, TAG_TROUBLE, "slow\xe2\x82");
	lease_status_tell(NULL, &frame);
	lease_status_tell(file, &frame);
	ok(lease_status_read(config, &status, &err) == 0 && status.engine &&
		status.start_failures == 3 && status.engine_age_ms == -1,
	    "what it tells is read");
	is_str(status.trouble, "slow\xef\xbf\xbd\xef\xbf\xbd",
	    "with its words, which are UTF-8");
	lease_status_close(file, config);
	ok(access(path, F_OK) != 0, "it takes the file with it");
	ok(lease_status_read(config, &status, &err) < 0 && !status.engine,
	    "it has ended");
	pid = fork();
	if (pid == 0) {
		lease_status_tell(lease_status_open(config, &err), &frame);
		(void)kill(getpid(), SIGKILL);
	}
	(void)waitpid(pid, NULL, 0);
	ok(access(path, F_OK) == 0 &&
		lease_status_read(config, &status, &err) < 0 &&
		err.code == ERR_UNAVAILABLE && !status.engine,
	    "one that was killed leaves the file, and nobody believes it");
	file = lease_status_open(config, &err);
	ok(lease_status_read(config, &status, &err) < 0 && !status.engine,
	    "nor while the next one has told nothing");
	lease_status_close(file, config);
}

int
main(void)
{
	auto_free char *folder = xstrdup(tap_folder());
	struct config config = { .state_dir = folder };
	const char *const names[] = { "worker", "broker" };
	struct err err = { 0 };

	for (size_t i = 0; i < 2; i++) {
		auto_free char *path = config_state_path(&config, names[i]);

		if (fd_make_dirs(path, 0700, &err) != 0)
			return 1;
	}
	test_judge();
	test_pulse(&config);
	test_status(&config);
	return tap_done();
}
