/* SPDX-License-Identifier: MIT */
/* sandbox/store/write_lock.c: one after another, and nobody waits for the dead.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "sandbox/store/connection.h"

#include "store.h"

#define SHORT_MS 100
#define LONG_MS 20000

static int said[2];

/* A process that takes a turn, says so and never gives it. */
static pid_t
hold(const char *path)
{
	struct write_lock lock;
	char byte = 'h';
	pid_t pid = fork();

	if (pid == 0) {
		write_lock_open(&lock, path);
		if (write_lock_take(&lock, LONG_MS))
			(void)!write(said[1], &byte, 1);
		for (;;)
			(void)pause();
	}
	ok(read(said[0], &byte, 1) == 1, "another process has its turn");
	return pid;
}

static void
end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
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
test_turn(const char *path)
{
	struct write_lock lock;
	pid_t holder;

	write_lock_open(&lock, path);
	ok(write_lock_take(&lock, SHORT_MS), "the first takes its turn");
	ok(write_lock_take(&lock, SHORT_MS), "and has it still");
	write_lock_give(&lock);
	holder = hold(path);
	ok(!write_lock_take(&lock, SHORT_MS), "the wait for it has an end");
	end_when_waited_for(holder);
	ok(write_lock_take(&lock, LONG_MS),
	    "the turn of a dead process is over");
	end(holder);
	(void)wait(NULL);
	write_lock_close(&lock);
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
	ok(two->lock.held, "takes the turn");
	db_rollback(two);
	ok(!two->lock.held, "a rollback gives it");
	is_int(store_insert(one, 1, JOB_PY), 0, "a refusal");
	ok(!one->lock.held, "gives it");
	is_int(job_claim(two, 0, &job, &err), 0, "a change that gives a row");
	ok(!two->lock.held, "gives it");
	job_release(&job);
	(void)store_sql("DROP TABLE jobs");
	is_int(store_insert(one, 2, JOB_PY), 0, "a failure");
	ok(!one->lock.held, "gives it");
	db_group_begin(one);
	(void)db_begin(one, &err);
	(void)db_group_commit(one, &err);
	ok(!one->lock.held, "a group gives it");
	db_close(one);
	db_close(two);
}

int
main(void)
{
	(void)store_make();
	if (pipe(said) < 0)
		return 1;
	test_turn(store_path);
	test_store();
	return tap_done();
}
