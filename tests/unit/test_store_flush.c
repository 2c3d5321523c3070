/* SPDX-License-Identifier: MIT */
/*
 * Changes that are flushed to the disk before they are reported as done.  This
 * program's own fdatasync() stands before the C library's, and counts.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "store/sandbox.h"

#include "store.h"

static int flushes;
static bool failing; /* as a disk that is gone */

int fdatasync(int fd);
int fsync(int fd);

int
fdatasync(int fd)
{
	flushes++;
	if (failing) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

int
fsync(int fd)
{
	flushes++;
	return (int)syscall(SYS_fsync, fd);
}

/* Whether there were any since the last call. */
static bool
flushed(void)
{
	bool any = flushes > 0;

	flushes = 0;
	return any;
}

static void
test_job(struct db *front, struct db *worker)
{
	struct err err = { 0 };
	struct job job;
	int64_t id;

	/* The first write after the WAL began anew always is. */
	(void)store_insert(front, 2, JOB_HEALTH);
	(void)store_sql("DELETE FROM jobs");
	(void)flushed();
	id = store_insert(front, 1, JOB_PY);
	ok(flushed(), "an insertion is flushed");
	is_int(job_claim(worker, 0, &job, &err), 0, "claim");
	ok(!flushed(), "a claim need not be");
	job_release(&job);
	is_int(job_start(worker, id, 0, &err), 0, "start");
	ok(flushed(), "a start is");
	is_int(job_finish(worker, id, 0, "{}", "exit 0", -1, &err), 0,
	    "finish");
	ok(!flushed(), "a finish is");
	is_int(db_flush(worker, &err), 0, "when it is asked for");
	ok(flushed(), "and told when it is done");
	is_int(job_delivered(worker, id, &err), 0, "deliver");
	ok(!flushed(), "a delivery need not be");
}

static void
test_sandbox(struct db *worker)
{
	struct err err = { 0 };
	struct sandbox s;
	bool created;

	is_int(sandbox_create(worker, 1, 100, &s, &created, &err), 0, "create");
	ok(flushed(), "a new sandbox is flushed");
	(void)sandbox_touch(worker, s.id, 100, &err);
	(void)sandbox_set_cwd(worker, s.id, "a", &err);
	(void)sandbox_set_usage(worker, s.id, 1, 1, false, &err);
	ok(!flushed(), "its use need not be");
	is_int(sandbox_remove(worker, s.id, &err), 0, "remove");
	ok(flushed(), "its removal is, before the folder goes");
}

static void
test_group(struct db *front)
{
	struct err err = { 0 };

	db_group_begin(front);
	(void)store_insert(front, 3, JOB_PY);
	is_int(db_group_commit(front, &err), 0, "commit a group");
	ok(!flushed(), "which is there before it is flushed");
	is_int(store_sql("SELECT count(*) FROM jobs WHERE user_id = 3"), 1,
	    "for all to see");
	failing = true;
	is_int(db_flush(front, &err), -1, "a flush that fails is told");
	failing = false;
	(void)flushed();
	is_int(db_flush(front, &err), 0, "and can be tried again");
	ok(flushed(), "the flush is one");
	is_int(db_flush(front, &err), 0, "without a change");
	ok(!flushed(), "there is nothing to flush");
	(void)store_insert(front, 4, JOB_PY);
	ok(flushed(), "after a group an insertion is flushed as before");
}

int
main(void)
{
	struct db *front;
	struct db *worker;

	(void)store_make();
	ok(flushed(), "flushes are seen here");
	front = store_open(DB_FRONT);
	worker = store_open(DB_WORKER);
	test_job(front, worker);
	test_sandbox(worker);
	test_group(front);
	db_close(front);
	db_close(worker);
	return tap_done();
}
