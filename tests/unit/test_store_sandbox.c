/* SPDX-License-Identifier: MIT */
/* The rows of sandboxes: one active for each user, expiry, removal. */
#include "store/sandbox.h"

#include "store.h"

static void
test_create(struct db *db)
{
	struct err err = { 0 };
	struct sandbox a;
	struct sandbox b;
	bool created = false;

	is_int(sandbox_find(db, 1, &a, &err), 1, "there is none");
	is_int(sandbox_create(db, 1, 100, &a, &created, &err), 0, "create");
	ok(created, "it is new");
	is_int(strspn(a.id, "0123456789abcdef"), SANDBOX_ID_LEN,
	    "its id is 32 hex digits");
	ok(a.state == SANDBOX_ACTIVE && a.user_id == 1 && !a.pinned, "active");
	is_str(a.cwd, "", "at the top");
	is_int(a.expires_at, a.used_at + 100, "it expires after retention");
	is_int(sandbox_create(db, 1, 100, &b, &created, &err), 0, "again");
	ok(!created, "it is not new");
	is_str(b.id, a.id, "the same one");
	is_int(sandbox_create(db, 2, 100, &b, &created, &err), 0, "another's");
	ok(created && strcmp(a.id, b.id) != 0, "is another one");
}

static void
test_change(struct db *db)
{
	struct err err = { 0 };
	struct sandbox a;
	struct sandbox b;
	bool created;

	(void)sandbox_create(db, 3, 100, &a, &created, &err);
	is_int(sandbox_set_cwd(db, a.id, "src/deep", &err), 0, "set cwd");
	is_int(sandbox_set_usage(db, a.id, 1000, 7, false, &err), 0,
	    "set usage");
	is_int(sandbox_touch(db, a.id, 5000, &err), 0, "touch");
	is_int(sandbox_find(db, 3, &b, &err), 0, "find");
	is_str(b.cwd, "src/deep", "cwd is kept");
	ok(b.used_bytes == 1000 && b.used_files == 7, "usage is kept");
	ok(b.expires_at >= a.used_at + 5000, "use puts expiry off");
	is_int(sandbox_touch(db, a.id, 10, &err), 0, "touch for less");
	(void)sandbox_find(db, 3, &a, &err);
	is_int(a.expires_at, b.expires_at, "never takes time away");
	is_int(sandbox_touch(db, "0", 10, &err), 1, "an unknown one");
}

/* Make the sandbox of a user as if it had been made long ago. */
static void
age(int64_t user)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql),
	    "UPDATE sandboxes SET expires_at = 5 "
	    "WHERE user_id = %" PRId64,
	    user);
	(void)store_sql(sql);
}

static void
test_expire(struct db *db)
{
	struct err err = { 0 };
	struct sandbox a;
	struct sandbox b;
	bool created;
	int64_t job;

	is_int(sandbox_take_expired(db, &b, &err), 1, "none has expired");
	(void)sandbox_create(db, 4, 100, &a, &created, &err);
	age(4);
	(void)store_sql("UPDATE sandboxes SET pinned = 1 WHERE user_id = 4");
	is_int(sandbox_take_expired(db, &b, &err), 1, "a pinned one never");
	(void)sandbox_create(db, 40, 100, &b, &created, &err);
	(void)store_sql("UPDATE sandboxes SET expires_at = 6 WHERE "
			"user_id = 40");
	is_int(sandbox_take_expired(db, &b, &err), 0,
	    "nor is it in the way of another");
	(void)sandbox_gone(db, b.id, &err);
	(void)store_sql("UPDATE sandboxes SET pinned = 0 WHERE user_id = 4");
	job = store_insert(db, 4, JOB_PY);
	is_int(sandbox_take_expired(db, &b, &err), 1,
	    "not while its user has an unfinished job");
	ok(job > 0, "the job was there");
	(void)store_sql("DELETE FROM jobs");
	is_int(sandbox_take_expired(db, &b, &err), 0, "then it is taken");
	ok(strcmp(a.id, b.id) == 0 && b.state == SANDBOX_EXPIRING, "expiring");
	is_int(sandbox_take_expired(db, &b, &err), 1, "but not twice");
	is_int(sandbox_touch(db, a.id, 100, &err), 1, "it cannot be used");
	is_int(sandbox_remove(db, a.id, &err), 1, "nor be removed");
	(void)store_sql("UPDATE sandboxes SET taken_at = taken_at - 61");
	is_int(sandbox_take_expired(db, &b, &err), 0,
	    "a sweeper that did not report back loses it");
	is_int(sandbox_retry(db, &err), 1, "an operator need not wait");
	is_int(sandbox_take_expired(db, &b, &err), 0, "taken at once");
	is_int(sandbox_gone(db, a.id, &err), 0, "its folder is gone");
	is_int(sandbox_gone(db, a.id, &err), 1, "only once");
	is_int(sandbox_find(db, 4, &b, &err), 0, "its owner finds the row");
	is_int(b.state, SANDBOX_EXPIRED, "which says that it has expired");
	is_int(sandbox_create(db, 4, 100, &b, &created, &err), 0, "create");
	ok(created && strcmp(a.id, b.id) != 0, "gives a new one");
	is_int(store_sql("SELECT count(*) FROM sandboxes WHERE user_id = 4"), 1,
	    "and the old row is gone");
}

static void
test_create_while_expiring(struct db *db)
{
	struct err err = { 0 };
	struct sandbox a;
	struct sandbox b;
	bool created;

	(void)sandbox_create(db, 5, 100, &a, &created, &err);
	age(5);
	(void)sandbox_take_expired(db, &b, &err);
	is_int(sandbox_create(db, 5, 100, &b, &created, &err), 0,
	    "create while the old one is being removed");
	ok(created && strcmp(a.id, b.id) != 0, "gives a new one");
	is_int(sandbox_gone(db, a.id, &err), 0, "then the old one is gone");
	is_int(sandbox_find(db, 5, &a, &err), 0, "find");
	is_str(a.id, b.id, "the new one is found");
	is_int(store_sql("SELECT count(*) FROM sandboxes WHERE user_id = 5"), 1,
	    "there is no other row");
}

static void
test_remove(struct db *db)
{
	struct err err = { 0 };
	struct sandbox a;
	struct sandbox b;
	bool created;

	(void)sandbox_create(db, 6, 100, &a, &created, &err);
	is_int(sandbox_gone(db, a.id, &err), 1, "an active one is not gone");
	is_int(sandbox_remove(db, a.id, &err), 0, "remove");
	is_int(sandbox_remove(db, a.id, &err), 1, "only once");
	is_int(sandbox_find(db, 6, &b, &err), 1, "its owner has none");
	is_int(sandbox_create(db, 6, 100, &b, &created, &err), 0, "a new one");
	is_int(sandbox_gone(db, a.id, &err), 0, "the folder is gone");
	is_int(sandbox_find(db, 6, &a, &err), 0, "find");
	is_str(a.id, b.id, "the new one is not touched by it");
	(void)sandbox_remove(db, b.id, &err);
	(void)store_sql("UPDATE sandboxes SET taken_at = 0");
	is_int(sandbox_take_expired(db, &a, &err), 0,
	    "a removal that was left is taken up");
	ok(strcmp(a.id, b.id) == 0 && a.state == SANDBOX_REMOVING, "removing");
	is_int(sandbox_gone(db, b.id, &err), 0, "and ended");
	is_int(sandbox_find(db, 6, &a, &err), 1, "nothing is left");
}

static void
test_next_expiry(struct db *db)
{
	struct err err = { 0 };
	struct sandbox a;
	bool created;
	int64_t left;

	(void)store_sql("DELETE FROM sandboxes");
	is_int(sandbox_next_expiry(db, &err), -1, "nothing to expire");
	is_int(err.code, ERR_NONE, "is no error");
	(void)sandbox_create(db, 7, 5000, &a, &created, &err);
	(void)sandbox_create(db, 8, 1000, &a, &created, &err);
	left = sandbox_next_expiry(db, &err);
	ok(left > 900 && left <= 1000, "the next one counts");
	(void)store_sql("UPDATE sandboxes SET pinned = 1 WHERE user_id = 8");
	left = sandbox_next_expiry(db, &err);
	ok(left > 4900 && left <= 5000, "pinned ones do not");
	age(7);
	is_int(sandbox_next_expiry(db, &err), 1, "one that is due: soon");
}

static void
test_count(struct db *db)
{
	struct sandbox_counts counts;
	struct err err = { 0 };

	(void)store_sql("DELETE FROM sandboxes");
	(void)store_sql(
	    "INSERT INTO sandboxes (id, user_id, state, created_at, used_at, "
	    "expires_at, pinned, taken_at) VALUES "
	    "('11111111111111111111111111111111', 1, "
	    "'active', 1, 1, 9999999999, 0, 0), "
	    "('22222222222222222222222222222222', 2, "
	    "'active', 1, 1, 1, 0, 0), "
	    "('33333333333333333333333333333333', 3, "
	    "'active', 1, 1, 1, 1, 0), "
	    "('44444444444444444444444444444444', 4, "
	    "'expiring', 1, 1, 1, 0, 0), "
	    "('55555555555555555555555555555555', 5, "
	    "'removing', 1, 1, 1, 0, 0), "
	    "('66666666666666666666666666666666', 6, "
	    "'expired', 1, 1, 1, 0, 0)");
	is_int(sandbox_count(db, &counts, &err), 0, "count");
	is_int(counts.active, 3, "active");
	is_int(counts.overdue, 1, "of those over their time, and not pinned");
	is_int(counts.expiring, 1, "expiring");
	is_int(counts.removing, 1, "removing");
}

int
main(void)
{
	struct db *db;

	(void)store_make();
	db = store_open(DB_WORKER);
	is_str(sandbox_states[SANDBOX_REMOVING], "removing", "state name");
	test_create(db);
	test_change(db);
	test_expire(db);
	test_create_while_expiring(db);
	test_remove(db);
	test_next_expiry(db);
	test_count(db);
	db_close(db);
	return tap_done();
}
