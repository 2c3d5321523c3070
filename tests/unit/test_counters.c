/* SPDX-License-Identifier: MIT */
/* Counters: all processes of a program count together; the death of one loses
 * no number. */
#include "protocol/counters.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/basics.h"
#include "base/config.h"
#include "tap.h"

#define ROUNDS 10000
#define WORKERS 4

static struct config config;

/* Several count at one time, and are killed in the middle of it. */
static void
count_in_workers(void)
{
	pid_t pids[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct counters *own = counters_open(&config,
			    COUNTERS_OF_WORKER);

			for (int k = 0; k < ROUNDS; k++)
				own->jobs_total[0][JOB_END_DONE]++;
			(void)raise(SIGSTOP);
			own->jobs_total[0][JOB_END_DONE]++;
			_exit(0);
		}
	}
	for (int i = 0; i < WORKERS; i++) {
		(void)waitpid(pids[i], NULL, WUNTRACED);
		(void)kill(pids[i], SIGKILL);
		(void)waitpid(pids[i], NULL, 0);
	}
}

static void
test_histogram(void)
{
	static struct histogram h;

	histogram_observe(&h, 1000);
	histogram_observe(&h, 1001);
	histogram_observe(&h, 61000000);
	histogram_observe(&h, -5);
	is_int(h.buckets[0], 2,
	    "an end counts as within; a negative time as 0");
	is_int(h.buckets[1], 1, "the next bucket");
	is_int(h.buckets[HISTOGRAM_ENDS], 1, "beyond the last end");
	is_int(h.sum_us, 61002001, "the sum");
}

static void
test_status(void)
{
	is_str(discord_status_words[counters_status(discord_status_words, 200)],
	    "200", "a status");
	is_str(discord_status_words[counters_status(discord_status_words, 0)],
	    "none", "no answer");
	is_str(discord_status_words[counters_status(discord_status_words, 418)],
	    "other", "a status that has no place of its own");
}

/* A program that may not write counts all the same, and stays alone. */
static void
test_unseen(const char *path, struct counters *seen)
{
	struct counters *own;
	struct err err;

	ok(truncate(path, 8) == 0 &&
		counters_read(&config, COUNTERS_OF_WORKER, seen, &err) != 0,
	    "a file of another size is not read");
	own = counters_open(&config, COUNTERS_OF_WORKER);
	own->jobs_total[0][JOB_END_DONE]++;
	is_int(own->jobs_total[0][JOB_END_DONE], 1, "nor is it written to");
}

int
main(void)
{
	static struct counters seen;
	const char *state = tap_folder();
	auto_free char *path = xprintf("%s/worker/counters-%s", state,
	    INLINE_VERSION);
	struct err err;

	config.state_dir = xstrdup(state);
	ok(counters_read(&config, COUNTERS_OF_WORKER, &seen, &err) != 0,
	    "nobody has counted anything");
	count_in_workers();
	ok(counters_read(&config, COUNTERS_OF_WORKER, &seen, &err) == 0,
	    "it is there to be read");
	is_int(seen.jobs_total[0][JOB_END_DONE], WORKERS * ROUNDS,
	    "what the dead have counted stays, and nothing is lost");
	ok(counters_read(&config, COUNTERS_OF_FRONT, &seen, &err) != 0,
	    "another program has counted nothing");
	test_histogram();
	test_status();
	test_unseen(path, &seen);
	free(config.state_dir);
	return tap_done();
}
