/* SPDX-License-Identifier: MIT */
/* Writers go one after another, and nobody waits for the dead. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "store/connection.h"

#include "store.h"

static int said[2];

/* A process that takes a turn, says so and never gives it. */
static pid_t
hold(void)
{
	struct err err = { 0 };
	char byte = 'h';
	pid_t pid = fork();

	if (pid == 0) {
		if (db_begin(store_open(DB_WORKER), &err) == 0)
			(void)!write(said[1], &byte, 1);
		for (;;)
			(void)pause();
	}
	ok(read(said[0], &byte, 1) == 1, "another process has its turn");
	return pid;
}

/* Kill the holder as soon as somebody waits. */
static void
end_when_waited_for(pid_t holder)
{
	pid_t waiter = getpid();
	char path[64];
	char text[64] = "";

	if (fork() != 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/wchan", (int)waiter);
	for (int i = 0; i < 1000 && strstr(text, "lock") == NULL; i++) {
		FILE *file = fopen(path, "r");

		if (file != NULL) {
			(void)!fgets(text, sizeof(text), file);
			(void)fclose(file);
		}
		(void)usleep(2000);
	}
	(void)kill(holder, SIGKILL);
	_exit(0);
}

static void
test_turn(void)
{
	struct err err = { 0 };
	pid_t holder = hold();
	struct db *front = store_open(DB_FRONT);
	struct db *worker = store_open(DB_WORKER);
	int64_t began_ms = clock_monotonic_ms();

	is_int(db_begin(front, &err), -1, "the wait for it has an end");
	is_str(err.text, "database: others write all the time", "in words");
	ok(clock_monotonic_ms() - began_ms >= 900, "not before its time");
	ok(clock_monotonic_ms() - began_ms < 9000, "nor as late as a worker's");
	end_when_waited_for(holder);
	began_ms = clock_monotonic_ms();
	is_int(db_begin(worker, &err), 0, "the turn of the dead is over");
	ok(clock_monotonic_ms() - began_ms < 9000, "at once");
	ok(worker->has_turn, "it is the next one's");
	(void)waitpid(holder, NULL, 0);
	(void)wait(NULL);
	db_close(front);
	db_close(worker);
}

/* Every way in which a change ends gives the turn to the next one. */
static void
test_store(void)
{
	struct err err = { 0 };
	struct db *one = store_open(DB_FRONT);
	struct db *two = store_open(DB_WORKER);
	struct job job;

	ok(store_insert(one, 1, JOB_PY) > 0, "a commit");
	is_int(db_begin(two, &err), 0, "begin");
	ok(two->has_turn, "takes the turn");
	db_rollback(two);
	ok(!two->has_turn, "a rollback gives it");
	is_int(store_insert(one, 1, JOB_PY), 0, "a refusal");
	ok(!one->has_turn, "gives it");
	is_int(job_claim(two, 0, &job, &err), 0, "a change that gives a row");
	ok(!two->has_turn, "gives it");
	job_release(&job);
	(void)store_sql("DROP TABLE jobs");
	is_int(store_insert(one, 2, JOB_PY), 0, "a failure");
	ok(!one->has_turn, "gives it");
	db_group_begin(one);
	(void)db_begin(one, &err);
	(void)db_group_commit(one, &err);
	ok(!one->has_turn, "a group gives it");
	db_close(one);
	db_close(two);
}

int
main(void)
{
	(void)store_make();
	if (pipe(said) < 0)
		return 1;
	test_turn();
	test_store();
	return tap_done();
}
