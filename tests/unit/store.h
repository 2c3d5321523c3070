/* SPDX-License-Identifier: MIT */
#ifndef TEST_STORE_H
#define TEST_STORE_H

/* Helpers of the store's unit tests: a fresh database, and rows to put in. */
#include <sqlite3.h>

#include "base/basics.h"
#include "store/db.h"
#include "store/job.h"
#include "tap.h"

#define DISCORD_EPOCH 1420070400000

static char store_path[256];
static int64_t store_interaction = 1000;

/* A migrated database in a folder of its own; its path is store_path. */
static inline const char *
store_make(void)
{
	struct err err = { 0 };
	struct db *db;

	(void)snprintf(store_path, sizeof(store_path), "%s/t.db", tap_folder());
	db = db_open(store_path, DB_ADMIN, &err);
	if (db == NULL || db_migrate(db, &err) < 0) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
	db_close(db);
	return store_path;
}

static inline struct db *
store_open(enum db_role role)
{
	struct err err = { 0 };
	struct db *db = db_open(store_path, role, &err);

	if (db == NULL) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
	return db;
}

/* Run SQL past the store, as an operator at a shell would; a number of the
 * first row, or -1. */
static inline int64_t
store_sql(const char *sql)
{
	sqlite3 *h = NULL;
	sqlite3_stmt *s = NULL;
	int64_t value = -1;

	if (sqlite3_open(store_path, &h) == SQLITE_OK) {
		(void)sqlite3_busy_timeout(h, 10000);
		if (sqlite3_prepare_v2(h, sql, -1, &s, NULL) != SQLITE_OK)
			note("%s: %s", sql, sqlite3_errmsg(h));
		else if (sqlite3_step(s) == SQLITE_ROW)
			value = sqlite3_column_int64(s, 0);
	}
	(void)sqlite3_finalize(s);
	(void)sqlite3_close(h);
	return value;
}

/* A job that is ready to be inserted, with an interaction of its own. */
static inline struct job
store_job(int64_t user, enum job_kind kind)
{
	struct job job;

	job_init(&job);
	job.interaction_id = store_interaction++;
	job.application_id = 77;
	job.user_id = user;
	job.kind = kind;
	job.token = xstrdup("a-token");
	job.text = xstrdup("print(1)");
	job.input = xstrdup("input");
	job.received_ms = clock_wall_ms();
	job.attachment_limit = 10 << 20;
	job.may_attach = true;
	return job;
}

static const struct job_limits store_limits = { .queue_max = 100,
	.user_rate = 100 };

/* Insert one and forget it; its id, 0 when it was refused. */
static inline int64_t
store_insert(struct db *db, int64_t user, enum job_kind kind)
{
	struct err err = { 0 };
	struct job job = store_job(user, kind);
	int64_t id = 0;

	if (job_insert(db, &job, &store_limits, &err) == JOB_INSERTED)
		id = job.id;
	else
		note("not inserted: %s", err.text);
	job_release(&job);
	return id;
}

/* Run job_prune or view_prune: how many rows it deletes. */
static inline int
store_prune(struct db *db, enum statement which, int64_t older_than_ms,
    int most, struct err *err)
{
	return db_change(db, which,
	    DB_VALUES(BIND(":before_ms", clock_wall_ms() - older_than_ms),
		BIND(":most", most)),
	    err);
}

#endif
