/* SPDX-License-Identifier: MIT */
/*
 * Groups: several insertions, one transaction, one flush.
 */
#include "sandbox/store/connection.h"

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

	(void)sqlite3_busy_timeout(connection_of(db)->handle, 1);
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
	char limit[64];

	free(large.text);
	large.text = xcalloc(1, LARGE + 1);
	memset(large.text, 'x', LARGE);
	(void)snprintf(limit, sizeof(limit), "PRAGMA max_page_count = %lld",
	    (long long)store_sql("PRAGMA page_count") + 20);
	(void)sqlite3_set_authorizer(connection_of(db)->handle, NULL, NULL);
	(void)sqlite3_exec(connection_of(db)->handle, limit, NULL, NULL, NULL);
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

/* PostgreSQL: a statement that fails takes no other of its group with it. */
static void
test_apart(struct db *db)
{
	struct err err = { 0 };
	struct job bad = store_job(21, JOB_PY);

	bad.attachment_limit = -1; /* a CHECK */
	db_group_begin(db);
	is_int(insert(db, 20, 100, &err), JOB_INSERTED, "a good one");
	is_int(job_insert(db, &bad, &store_limits, &err), JOB_INSERT_FAILED,
	    "a bad one");
	is_int(err.code, ERR_INPUT, "is told why");
	is_int(insert(db, 22, 100, &err), JOB_INSERTED, "another good one");
	is_int(db_group_commit(db, &err), 0, "commit");
	is_int(jobs(), 8, "both good ones are there");
	job_release(&bad);
}

/* The connection goes in the middle of a group: all are told, none is there,
 * and the next group has a new connection. */
static void
test_cut(struct db *db)
{
	struct err err = { 0 };

	db_group_begin(db);
	is_int(insert(db, 30, 100, &err), JOB_INSERTED, "before the cut");
	ok(store_cut("il-fcgi") > 0, "the server ends the session");
	is_int(insert(db, 31, 100, &err), JOB_INSERT_FAILED, "after it");
	is_int(insert(db, 32, 100, &err), JOB_INSERT_FAILED, "and later");
	is_int(db_group_commit(db, &err), -1, "the group is lost");
	is_int(jobs(), 8, "nothing of it is there");
	is_int(insert(db, 30, 100, &err), JOB_INSERTED, "then all is well");
	is_int(jobs(), 9, "on a new connection");
}

/* TEST_STORE is on a small disk: who does not fit is told, all others are
 * there. */
static void
test_full_server(struct db *db)
{
	struct job_limits limits = { .queue_max = INT64_MAX,
		.user_rate = INT64_MAX };
	struct err err = { 0 };
	int64_t before = jobs();
	int64_t inserted = 0;
	struct job large = store_job(40, JOB_PY);

	free(large.text);
	large.text = xcalloc(1, LARGE + 1);
	for (size_t i = 0; i < LARGE; i++) /* not to be compressed */
		large.text[i] = (char)('0' + random() % 75);
	for (int i = 0; i < 60 && err.code == ERR_NONE; i++) {
		large.user_id++;
		large.interaction_id = store_interaction++;
		db_group_begin(db);
		if (job_insert(db, &large, &limits, &err) == JOB_INSERTED &&
		    db_group_commit(db, &err) == 0)
			inserted++;
		else
			(void)db_group_commit(db, &(struct err){ 0 });
	}
	is_int(err.code, ERR_LIMIT, "a full disk is told");
	is_int(jobs() - before, inserted, "what was promised is there");
	(void)store_sql("DELETE FROM jobs WHERE user_id > 40");
	(void)store_sql("VACUUM jobs");
	is_int(insert(db, 90, 100, &err), JOB_INSERTED, "with room: again");
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
	if (getenv("TEST_FULL") != NULL) {
		test_full_server(front);
	} else if (store_is_postgres()) {
		test_apart(front);
		test_cut(front);
	} else {
		test_locked(front, worker);
		test_full(worker);
	}
	db_close(front);
	db_close(worker);
	return tap_done();
}
