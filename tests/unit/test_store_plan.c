/* SPDX-License-Identifier: MIT */
/*
 * SQLite's way to the rows of each statement: it never walks through a whole
 * table, except in the partial indexes that hold only unfinished jobs, or
 * the sandboxes that there are.
 * The plan does not depend on how much is stored: ANALYZE is never run.
 */
#include "store.h"
#include "store/connection.h"

/* A step of a plan that costs more the longer the service has been running. */
static bool
is_slow(const char *step)
{
	static const char *const small[] = { "jobs_queue", "jobs_open",
		"jobs_held", "jobs_one_for_user", "sandboxes_expiry",
		"sandboxes_going", "sandboxes_one_active", NULL };

	if (strncmp(step, "SCAN", 4) != 0 || strstr(step, "CONSTANT") != NULL)
		return false;
	/* one row, or what is bound */
	if (strncmp(step, "SCAN (subquery", 14) == 0 ||
	    strncmp(step, "SCAN box", 8) == 0 ||
	    strstr(step, "VIRTUAL TABLE") != NULL)
		return false;
	for (int i = 0; small[i] != NULL; i++) {
		if (strstr(step, small[i]) != NULL)
			return false;
	}
	return true;
}

/* Does the running service use the statement?  Lists for operators may take
 * longer. */
static bool
is_in_use(const char *name)
{
	return strncmp(name, "connect_", 8) != 0 &&
	    strncmp(name, "list_", 5) != 0;
}

static void
test_plan(struct db *db, const struct statement_text *text)
{
	char sql[8192];
	sqlite3_stmt *s = NULL;
	bool slow = false;

	(void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", text->sql);
	if (sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL) != SQLITE_OK) {
		(void)tap_point(false, text->name, __FILE__, __LINE__);
		return;
	}
	while (sqlite3_step(s) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(s, 3);

		if (is_slow(step)) {
			slow = true;
			note("%s: %s", text->name, step);
		}
	}
	(void)sqlite3_finalize(s);
	(void)tap_point(!slow, text->name, __FILE__, __LINE__);
}

/* Where another index would do, too, but cost more the more is stored. */
static const struct {
	enum statement which;
	const char *index;
} wanted[] = {
	{ STATEMENT_JOB_CHECK, "jobs_interaction" },
	{ STATEMENT_JOB_CHECK, "jobs_one_for_user" },
	{ STATEMENT_JOB_CHECK, "jobs_rate" },
	{ STATEMENT_JOB_UNFINISHED, "jobs_open" },
	{ STATEMENT_JOB_CHECK, "jobs_guild" },
	{ STATEMENT_JOB_CHECK, "jobs_received" },
	{ STATEMENT_JOB_CHECK, "jobs_open" },
	{ STATEMENT_RULE_FIND, "PRIMARY KEY (subject=? AND id=?)" },
	{ STATEMENT_JOB_CLAIM, "jobs_queue" },
	{ STATEMENT_JOB_NEXT_UNTOLD, "jobs_held" },
	{ STATEMENT_JOB_RECOVER, "jobs_held" },
	{ STATEMENT_JOB_PRUNE, "jobs_received" },
	{ STATEMENT_VIEW_COUNT, "views_user" },
	{ STATEMENT_VIEW_FORGET, "views_user" },
	{ STATEMENT_VIEW_SHARE, "views_user" },
	{ STATEMENT_VIEW_PRUNE, "views_created" },
	{ STATEMENT_SANDBOX_TAKE_ACTIVE, "jobs_one_for_user" },
	{ STATEMENT_SANDBOX_TAKE_ACTIVE, "sandboxes_expiry" },
	{ STATEMENT_SANDBOX_TAKE_LEFT, "sandboxes_going" },
	{ STATEMENT_JOB_COUNT_KINDS, "jobs_open" },
	{ STATEMENT_SANDBOX_COUNT, "sandboxes_one_active" },
	{ STATEMENT_SANDBOX_COUNT, "sandboxes_expiry" },
	{ STATEMENT_SANDBOX_COUNT, "sandboxes_going" },
	{ STATEMENT_NAMES_SUGGEST, "PRIMARY KEY (sandbox_id=?)" },
};

static bool
uses(struct db *db, enum statement which, const char *index)
{
	char sql[8192];
	sqlite3_stmt *s = NULL;
	bool found = false;

	(void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s",
	    statement_texts[which].sql);
	if (sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL) != SQLITE_OK)
		return false;
	while (sqlite3_step(s) == SQLITE_ROW) {
		if (strstr((const char *)sqlite3_column_text(s, 3), index) !=
		    NULL)
			found = true;
	}
	(void)sqlite3_finalize(s);
	return found;
}

int
main(void)
{
	struct db *db;

	(void)store_make();
	db = store_open(DB_ADMIN);
	ok(is_slow("SCAN jobs"), "a walk through all jobs is slow");
	ok(!is_slow("SCAN jobs USING INDEX jobs_queue"), "the queue is not");
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		if (is_in_use(statement_texts[i].name))
			test_plan(db, &statement_texts[i]);
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		(void)tap_point(uses(db, wanted[i].which, wanted[i].index),
		    wanted[i].index, __FILE__, __LINE__);
	db_close(db);
	return tap_done();
}
