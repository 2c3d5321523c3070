/* SPDX-License-Identifier: MIT */
/*
 * Several processes on one database: each job goes to one of them, each change
 * of state happens once, and what was committed survives kill -9.
 */
#include <signal.h>
#include <sys/wait.h>

#include "store.h"

#define PROCESSES 4
#define JOBS 200

static pid_t
spawn(void (*body)(int fd, int n), int fd, int n)
{
	pid_t pid = fork();

	if (pid == 0) {
		body(fd, n);
		_exit(0);
	}
	return pid;
}

static void
send_id(int fd, int64_t id)
{
	if (write(fd, &id, sizeof(id)) != sizeof(id))
		_exit(1);
}

/* Claim, start and finish until the queue is empty; tell each id. */
static void
claimer(int fd, int slot)
{
	struct err err = { 0 };
	struct db *db = store_open(DB_WORKER);
	struct job job;

	while (job_claim(db, slot, &job, &err) == 0) {
		if (job_start(db, job.id, slot, &err) == 0)
			send_id(fd, job.id);
		(void)job_finish(db, job.id, slot, "{}", "exit 0", -1, &err);
		job_release(&job);
	}
	db_close(db);
}

/* Insert for ever; tell each id after job_insert has returned. */
static void
inserter(int fd, int n)
{
	struct db *db = store_open(DB_FRONT);
	struct job_limits limits = { .queue_max = INT64_MAX,
		.user_rate = INT64_MAX };

	for (int64_t i = 1;; i++) {
		struct err err = { 0 };
		struct job job = store_job(n * 1000000 + i, JOB_PY);

		job.interaction_id = job.user_id;
		if (job_insert(db, &job, &limits, &err) != JOB_INSERTED)
			_exit(1);
		send_id(fd, job.id);
		job_release(&job);
	}
}

/* All try to start the same job; who did so tells it. */
static void
starter(int fd, int slot)
{
	struct err err = { 0 };
	struct db *db = store_open(DB_WORKER);
	int64_t id = store_sql("SELECT id FROM jobs WHERE state = 'claimed'");

	(void)slot;
	if (job_start(db, id, 0, &err) == 0)
		send_id(fd, id);
	db_close(db);
}

static void
test_claim(void)
{
	static int64_t seen[JOBS];
	struct db *db = store_open(DB_FRONT);
	struct job_limits limits = { .queue_max = JOBS, .user_rate = JOBS };
	struct err err = { 0 };
	int64_t id;
	int pipes[2];
	int count = 0;
	bool twice = false;

	for (int i = 0; i < JOBS; i++) {
		struct job job = store_job(i + 1, JOB_PY);

		(void)job_insert(db, &job, &limits, &err);
		job_release(&job);
	}
	db_close(db);
	if (pipe(pipes) != 0)
		exit(1);
	for (int i = 0; i < PROCESSES; i++)
		(void)spawn(claimer, pipes[1], i);
	(void)close(pipes[1]);
	while (count < JOBS && read(pipes[0], &id, sizeof(id)) == sizeof(id)) {
		for (int i = 0; i < count; i++)
			twice = twice || seen[i] == id;
		seen[count++] = id;
	}
	(void)close(pipes[0]);
	while (wait(NULL) > 0)
		;
	is_int(count, JOBS, "every job was started");
	ok(!twice, "and none by two workers");
	is_int(store_sql("SELECT count(*) FROM jobs WHERE state = 'finished'"),
	    JOBS, "all are finished");
	(void)store_sql("DELETE FROM jobs");
}

static void
test_start_once(void)
{
	struct db *db = store_open(DB_WORKER);
	struct err err = { 0 };
	struct job job;
	int64_t id;
	int pipes[2];
	int count = 0;

	(void)store_insert(db, 1, JOB_PY);
	(void)job_claim(db, 0, &job, &err);
	job_release(&job);
	db_close(db);
	if (pipe(pipes) != 0)
		exit(1);
	for (int i = 0; i < PROCESSES; i++)
		(void)spawn(starter, pipes[1], 0);
	(void)close(pipes[1]);
	while (read(pipes[0], &id, sizeof(id)) == sizeof(id))
		count++;
	(void)close(pipes[0]);
	while (wait(NULL) > 0)
		;
	is_int(count, 1, "one of many starts a job");
	(void)store_sql("DELETE FROM jobs");
}

static void
test_kill(int round)
{
	int64_t ids[4096];
	int64_t found = 0;
	int pipes[2];
	int count = 0;
	pid_t pid;

	if (pipe(pipes) != 0)
		exit(1);
	pid = spawn(inserter, pipes[1], round);
	(void)close(pipes[1]);
	while (count < 20 + 7 * round &&
	    read(pipes[0], &ids[count], sizeof(*ids)) == sizeof(*ids))
		count++;
	(void)kill(pid, SIGKILL);
	while (count < 4096 &&
	    read(pipes[0], &ids[count], sizeof(*ids)) == sizeof(*ids))
		count++;
	(void)close(pipes[0]);
	(void)waitpid(pid, NULL, 0);
	for (int i = 0; i < count; i++) {
		char sql[128];

		(void)snprintf(sql, sizeof(sql),
		    "SELECT count(*) FROM jobs "
		    "WHERE state = 'queued' AND id = %" PRId64,
		    ids[i]);
		found += store_sql(sql);
	}
	ok(count >= 20, "some were inserted");
	is_int(found, count, "each of them is there after kill -9");
}

int
main(void)
{
	(void)store_make();
	test_claim();
	test_start_once();
	for (int i = 1; i <= 5; i++)
		test_kill(i);
	is_int(store_sql("SELECT count(*) FROM pragma_integrity_check "
			 "WHERE integrity_check <> 'ok'"),
	    0, "the file is sound");
	return tap_done();
}
