/* SPDX-License-Identifier: MIT */
/*
 * The store's speed, without a service around it:
 *
 *	bench_store FILE migrate
 *	bench_store FILE commands COUNT
 *	    one after the other; ms of each step of a job's life
 *	bench_store FILE fronts PROCESSES GROUP SECONDS
 *	    jobs that are acknowledged in a second, in groups as il-fcgi's
 *	bench_store FILE claims WORKERS COUNT SLEEP_MS
 *	    COUNT jobs are queued, then so many processes claim and end them;
 *	    each job sleeps so long
 *
 * FILE is the database.  Prints a line of JSON.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "samples.h"
#include "store/db.h"
#include "store/job.h"

static const struct job_limits no_limits = { .queue_max = INT64_MAX,
	.user_rate = INT64_MAX };

/* Memory that the processes share. */
static struct shared {
	_Atomic int64_t done;
	_Atomic int ready;
	_Atomic bool go;
} * shared;

static struct db *
open_store(const char *path, enum db_role role)
{
	struct err err = { 0 };
	struct db *db = db_open(path, role, &err);

	if (db == NULL)
		log_fatal(1, "%s", err.text);
	return db;
}

static void
need(bool good, const char *what, const struct err *err)
{
	if (!good)
		log_fatal(1, "%s: %s", what, err->text);
}

static double
since(int64_t begun_us)
{
	return (double)(clock_monotonic_us() - begun_us) / 1e3;
}

/* Jobs of as many people, committed and flushed together. */
static void
insert_group(struct db *db, int64_t first, int count)
{
	struct err err = { 0 };

	db_group_begin(db);
	for (int i = 0; i < count; i++) {
		struct job job;

		job_init(&job);
		job.interaction_id = job.user_id = first + i;
		job.application_id = 1;
		job.kind = JOB_PY;
		job.token = "a token of some length";
		job.text = "print('hello world')";
		job.received_ms = clock_wall_ms();
		need(job_insert(db, &job, &no_limits, &err) == JOB_INSERTED,
		    "insert", &err);
	}
	need(db_group_commit(db, &err) == 0, "commit", &err);
	need(db_flush(db, &err) == 0, "flush", &err);
}

/* Interactions that nobody had before. */
static int64_t
fresh(int process)
{
	return clock_wall_ms() * 100000 + (int64_t)process * 10000000000000000;
}

static void
say(const char *name, struct samples *samples)
{
	printf(", \"%s\": ", name);
	samples_print(samples, stdout);
	samples_release(samples);
}

/* ---- one command after the other ---- */

enum step { INSERT, CLAIM, START, FINISH, FLUSH, TOLD, STEPS };
static const char *const step_names[] = { "insert", "claim", "start", "finish",
	"flush", "told" };

static void
measure_commands(const char *path, int count)
{
	struct db *worker = open_store(path, DB_WORKER);
	struct db *front = open_store(path, DB_FRONT);
	struct samples samples[STEPS] = { 0 };
	int64_t first = fresh(0);
	struct err err = { 0 };
	struct job job;

	for (int i = 0; i < count; i++) {
		int64_t at[STEPS + 1];

		at[INSERT] = clock_monotonic_us();
		insert_group(front, first + i, 1);
		at[CLAIM] = clock_monotonic_us();
		need(job_claim(worker, 0, &job, &err) == 0, "claim", &err);
		at[START] = clock_monotonic_us();
		need(job_start(worker, job.id, 0, &err) == 0, "start", &err);
		at[FINISH] = clock_monotonic_us();
		need(job_finish(worker, job.id, 0, "{}", "exit 0", 1, &err) ==
			0,
		    "finish", &err);
		at[FLUSH] = clock_monotonic_us();
		need(db_flush(worker, &err) == 0, "flush", &err);
		at[TOLD] = clock_monotonic_us();
		need(job_delivered(worker, job.id, &err) == 0, "tell", &err);
		at[STEPS] = clock_monotonic_us();
		for (int s = 0; s < STEPS; s++)
			samples_add(&samples[s],
			    (double)(at[s + 1] - at[s]) / 1e3);
		job_release(&job);
	}
	printf("{\"count\": %d", count);
	for (int s = 0; s < STEPS; s++)
		say(step_names[s], &samples[s]);
	printf("}\n");
	db_close(front);
	db_close(worker);
}

/* ---- many at one time ---- */

/* Start processes that are ready, let them go at one moment, and wait for all:
 * seconds.  `work` gets the number of the process and two numbers of ours. */
static double
run_many(const char *path, int count, int a, int b,
    void (*work)(const char *path, int process, int a, int b))
{
	int64_t begun_us;
	int status = 0;

	for (int i = 0; i < count; i++)
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(path, i, a, b);
			_exit(0);
		}
	while (shared->ready < count)
		if (waitpid(-1, &status, WNOHANG) > 0 || usleep(1000) != 0)
			log_fatal(1, "a process has failed");
	begun_us = clock_monotonic_us();
	shared->go = true;
	while (wait(&status) > 0)
		if (status != 0)
			log_fatal(1, "a process has failed");
	return since(begun_us) / 1e3;
}

static void
wait_for_go(void)
{
	shared->ready++;
	while (!shared->go)
		(void)usleep(500);
}

static void
be_front(const char *path, int process, int group, int seconds)
{
	struct db *db = open_store(path, DB_FRONT);
	int64_t next = fresh(process);
	int64_t until_ms;

	wait_for_go();
	until_ms = clock_monotonic_ms() + seconds * 1000;
	for (; clock_monotonic_ms() < until_ms; next += group) {
		insert_group(db, next, group);
		shared->done += group;
	}
	db_close(db);
}

static void
be_worker(const char *path, int process, int sleep_ms, int b)
{
	struct db *db = open_store(path, DB_WORKER);
	struct err err = { 0 };
	struct job job;

	(void)b;
	wait_for_go();
	while (job_claim(db, process, &job, &err) == 0) {
		need(job_start(db, job.id, process, &err) == 0, "start", &err);
		(void)usleep((unsigned)sleep_ms * 1000);
		need(job_finish(db, job.id, process, "{}", "exit 0", 1, &err) ==
			0,
		    "finish", &err);
		need(db_flush(db, &err) == 0, "flush", &err);
		need(job_delivered(db, job.id, &err) == 0, "tell", &err);
		job_release(&job);
		shared->done++;
	}
	db_close(db);
}

static void
measure_many(const char *path, bool fronts, int count, int a, int b)
{
	double seconds;

	if (!fronts) {
		struct db *db = open_store(path, DB_FRONT);

		for (int i = 0; i < a; i += 100)
			insert_group(db, fresh(0) + i,
			    a - i < 100 ? a - i : 100);
		db_close(db);
	}
	seconds = fronts ? run_many(path, count, a, b, be_front) :
			   run_many(path, count, b, 0, be_worker);
	printf("{\"processes\": %d, \"jobs\": %" PRId64 ", \"seconds\": %.3f, "
	       "\"per_second\": %.1f}\n",
	    count, (int64_t)shared->done, seconds,
	    (double)shared->done / seconds);
}

static int
usage(void)
{
	(void)fputs("usage: bench_store FILE migrate | commands N | "
		    "fronts PROCESSES GROUP SECONDS | claims WORKERS N "
		    "SLEEP_MS\n",
	    stderr);
	return 64;
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "";
	struct err err = { 0 };
	int n[3] = { 0 };

	log_init("bench_store", LOG_LEVEL_WARN);
	for (int i = 0; i < 3 && i + 3 < argc; i++)
		n[i] = (int)strtol(argv[i + 3], NULL, 10);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return usage();
	if (strcmp(mode, "migrate") == 0 && argc == 3) {
		struct db *db = open_store(argv[1], DB_ADMIN);

		need(db_migrate(db, &err) >= 0, "migrate", &err);
		db_close(db);
	} else if (strcmp(mode, "commands") == 0 && argc == 4) {
		measure_commands(argv[1], n[0]);
	} else if (strcmp(mode, "fronts") == 0 && argc == 6) {
		measure_many(argv[1], true, n[0], n[1], n[2]);
	} else if (strcmp(mode, "claims") == 0 && argc == 6) {
		measure_many(argv[1], false, n[0], n[1], n[2]);
	} else {
		return usage();
	}
	return 0;
}
