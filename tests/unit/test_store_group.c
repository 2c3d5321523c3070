/* SPDX-License-Identifier: MIT */
/*
 * Groups: several insertions, one transaction, one flush.
 */
#include "store/connection.h"

#include "store.h"

#define LARGE (1 << 20)

static enum job_insert_result
insert(struct db *db, int64_t user, int64_t queue_max, struct err *err)
{
	struct job_limits limits = { .queue_max = queue_max, .user_rate = 100 };
	struct job job = store_job(user, JOB_PY);
	enum job_insert_result result = job_insert(db, &job, &limits, err);

	job_release(&job);
	return result;
}

static int64_t
jobs(void)
{
	return store_sql("SELECT count(*) FROM jobs");
}

static void
test_together(struct db *db)
{
	struct err err = { 0 };

	db_group_begin(db);
	is_int(insert(db, 1, 100, &err), JOB_INSERTED, "one");
	is_int(insert(db, 2, 100, &err), JOB_INSERTED, "another one");
	is_int(jobs(), 0, "nobody sees them before the group is committed");
	is_int(db_group_commit(db, &err), 0, "commit");
	is_int(jobs(), 2, "then both are there");
}

static void
test_refused(struct db *db)
{
	struct err err = { 0 };

	db_group_begin(db);
	is_int(insert(db, 3, 100, &err), JOB_INSERTED, "a third user");
	is_int(insert(db, 1, 100, &err), JOB_RUNNING, "one who has a job");
	is_int(insert(db, 3, 100, &err), JOB_RUNNING,
	    "one who got a job in this group");
	is_int(insert(db, 4, 100, &err), JOB_INSERTED, "a fourth user");
	is_int(db_group_commit(db, &err), 0, "commit");
	is_int(jobs(), 4, "who was refused takes nothing from the others");
}

static void
test_queue(struct db *db)
{
	struct err err = { 0 };

	db_group_begin(db);
	is_int(insert(db, 5, 6, &err), JOB_INSERTED, "the fifth of six");
	is_int(insert(db, 6, 6, &err), JOB_INSERTED, "the sixth of six");
	is_int(insert(db, 7, 6, &err), JOB_QUEUE_FULL,
	    "the queue is full within a group, too");
	is_int(db_group_commit(db, &err), 0, "commit");
	is_int(jobs(), 6, "six are there");
}

static void
test_locked(struct db *db, struct db *other)
{
	struct err err = { 0 };

	(void)sqlite3_busy_timeout(db->handle, 1);
	is_int(db_begin(other, &err), 0, "somebody else writes");
	db_group_begin(db);
	is_int(insert(db, 8, 100, &err), JOB_INSERT_FAILED, "one cannot");
	is_int(err.code, ERR_BUSY, "and is told why");
	db_rollback(other);
	err.code = ERR_NONE;
	is_int(insert(db, 9, 100, &err), JOB_INSERT_FAILED,
	    "the next one does not wait again");
	is_int(err.code, ERR_BUSY, "and is told the same");
	is_int(db_group_commit(db, &err), -1, "so is the group");
	is_int(insert(db, 8, 100, &err), JOB_INSERTED, "outside all is well");
	is_int(jobs(), 7, "seven are there");
}

/* No room for a large one: whatever SQLite does to the others, the commit says
 * whether they are there. */
static void
test_full(struct db *db)
{
	struct err err = { 0 };
	struct job large = store_job(12, JOB_PY);
	int64_t before = jobs();
	int64_t promised = 2;
	char *text = xcalloc(1, LARGE + 1);
	char limit[64];

	memset(text, 'x', LARGE);
	free((void *)(uintptr_t)large.text);
	large.text = text;
	(void)snprintf(limit, sizeof(limit), "PRAGMA max_page_count = %lld",
	    (long long)store_sql("PRAGMA page_count") + 20);
	(void)sqlite3_set_authorizer(db->handle, NULL, NULL);
	(void)sqlite3_exec(db->handle, limit, NULL, NULL, NULL);
	db_group_begin(db);
	is_int(insert(db, 10, 100, &err), JOB_INSERTED, "a small one");
	is_int(job_insert(db, &large, &store_limits, &err), JOB_INSERT_FAILED,
	    "one that does not fit");
	is_int(err.code, ERR_LIMIT, "and is told why");
	if (insert(db, 11, 100, &err) != JOB_INSERTED)
		promised = 0;
	if (db_group_commit(db, &err) != 0)
		promised = 0;
	is_int(jobs() - before, promised, "all that was promised, or nothing");
	job_release(&large);
}

int
main(void)
{
	struct db *front;
	struct db *worker;

	(void)store_make();
	front = store_open(DB_FRONT);
	worker = store_open(DB_WORKER);
	test_together(front);
	test_refused(front);
	test_queue(front);
	test_locked(front, worker);
	test_full(worker);
	db_close(front);
	db_close(worker);
	return tap_done();
}
