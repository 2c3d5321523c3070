/* SPDX-License-Identifier: MIT */
/* People who move to another node: how far they are, and their rows. */
#include "store/moves.h"

#include "protocol/node_table.h"
#include "store.h"
#include "store/sandbox.h"
#include "store/job.h"

#define ALICE 7

static int slot;
static char id[SANDBOX_ID_LEN + 1];

static char code[] = "print('\\u0000', \"\xc3\xa9\")\n\\\\";
static char none[] = "";
static const struct view_texts texts = { code, none, none, none, none };

static enum move_state
state_of(struct db *db, int64_t user)
{
	char to[MOVES_NODE_MAX + 1] = "";
	struct err err;

	return moves_find(db, slot, user, to, &err);
}

/* A person of whom everything is there. */
static void
make_alice(struct db *db)
{
	struct session session = { .started_at = 5, .names = 3 };
	struct view view = {
		.user_id = ALICE, .kind = JOB_PY, .share = 1, .texts = &texts
	};
	struct rule rule = { .blocked = true, .reason = "spam", .rate = 9 };
	struct sandbox sandbox;
	bool created;
	struct err err;

	(void)sandbox_create(db, ALICE, 1000, &sandbox, &created, &err);
	(void)snprintf(id, sizeof(id), "%s", sandbox.id);
	(void)sandbox_set_cwd(db, id, "a/b", &err);
	(void)session_put(db, id, &session, &err);
	(void)view_insert(db, &view, &err);
	(void)view_insert(db, &view, &err);
	(void)rule_put(db, RULE_USER, ALICE, &rule, &err);
	(void)store_sql("INSERT INTO names VALUES ((SELECT id FROM sandboxes), "
			"'file', '', 'x.txt')");
	(void)store_sql("UPDATE sandboxes SET pinned = 1, used_at = 100");
}

static void
test_states(struct db *db)
{
	struct err err = { 0 };

	is_int(state_of(db, ALICE), MOVE_NONE, "nobody moves");
	is_int(moves_begin(db, slot, ALICE, "b", &err), 0, "one leaves");
	is_int(state_of(db, ALICE), MOVE_LEAVING, "that is known");
	is_int(state_of(db, 8), MOVE_NONE, "of that one alone");
	is_int(moves_begin(db, slot, ALICE, "b", &err), 0, "said again");
	is_int(moves_begin(db, slot, ALICE, "c", &err), 1, "not elsewhere");
	is_int(moves_stay(db, slot, ALICE, &err), 0, "they stay");
	is_int(state_of(db, ALICE), MOVE_NONE, "and nothing is left of it");
	is_int(moves_end(db, slot, ALICE, &err), 1, "who stays has not gone");
	is_int(store_sql("SELECT count(*) FROM views"), 2, "nor their rows");
	is_int(moves_end_slot(db, slot, "b", &err), 1, "nor their slot");
	is_int(state_of(db, MOVES_ALL), MOVE_NONE, "which is not gone");
}

static void
test_gone(struct db *db)
{
	struct err err = { 0 };
	char to[MOVES_NODE_MAX + 1] = "";

	(void)moves_begin(db, slot, ALICE, "b", &err);
	is_int(moves_end(db, slot, ALICE, &err), 0, "one has gone");
	is_int(moves_find(db, slot, ALICE, to, &err), MOVE_GONE, "for good");
	is_str(to, "b", "to a node");
	is_int(moves_begin(db, slot, ALICE, "b", &err), 1, "once");
	is_int(store_sql("SELECT count(*) FROM views"), 0, "no view is left");
	is_int(store_sql("SELECT count(*) FROM rules"), 0, "no rule");
	is_int(store_sql("SELECT count(*) FROM sandboxes WHERE "
			 "state = 'removing'"),
	    1, "the sandbox is a sweeper's");
	is_int(moves_end_slot(db, slot, "b", &err), 0, "the slot has gone");
	is_int(store_sql("SELECT count(*) FROM moves"), 1, "by one row");
	is_int(moves_find(db, slot, 9, to, &err), MOVE_GONE, "for all in it");
	is_int(moves_forget(db, slot, &err), 0, "it is about to come back");
	is_int(state_of(db, ALICE), MOVE_NONE, "and has not come");
	is_int(moves_come_slot(db, slot, "5.0", &err), 0, "it has");
	is_int(moves_find(db, slot, ALICE, to, &err), MOVE_COME, "with all");
	is_str(to, "5.0", "by a table");
	is_int(moves_begin(db, slot, ALICE, "b", &err), 0, "one leaves again");
	is_int(state_of(db, ALICE), MOVE_LEAVING, "whose own row says so");
	is_int(moves_stay(db, slot, ALICE, &err), 0, "and stays");
	is_int(state_of(db, ALICE), MOVE_COME, "as the others do");
	(void)store_sql("DELETE FROM moves");
}

static int
count_one(void *arg, int64_t user)
{
	*(int64_t *)arg += user;
	return 0;
}

static void
test_people(struct db *db)
{
	int64_t sum = 0;
	struct err err = { 0 };

	(void)store_sql("INSERT INTO sandboxes (id, user_id, state, created_at,"
			" used_at, expires_at) VALUES "
			"('00000000000000000000000000000001', 16, 'removing', "
			"1, 1, 1), ('00000000000000000000000000000002', 32, "
			"'expired', 1, 1, 1)");
	(void)store_insert(db, 64, JOB_PY);
	is_int(moves_each_person(db, count_one, &sum, &err), 0, "people");
	is_int(sum, ALICE + 32 + 64, "of sandboxes, views, rules and jobs");
	is_int(person_open(db, 64, &err), 1, "a job is open");
	is_int(person_open(db, ALICE, &err), 0, "of none other");
	(void)store_sql("DELETE FROM jobs");
	(void)store_sql("DELETE FROM sandboxes WHERE user_id <> 7");
}

/* Delete all people: a test makes its own. */
static void
clear(void)
{
	(void)store_sql("DELETE FROM sandboxes");
	(void)store_sql("DELETE FROM sessions");
	(void)store_sql("DELETE FROM names");
	(void)store_sql("DELETE FROM rules");
}

/* Out of this database and in again: the same. */
static void
test_rows(struct db *db, struct buf *rows)
{
	struct person_sandbox sandbox;
	struct err err = { 0 };
	auto_buf struct buf again = BUF_INIT(PERSON_ROWS_MAX);

	is_int(person_rows(db, ALICE, rows, &err), 0, "all rows");
	is_int(person_look(db, buf_str(rows), &sandbox, &err), 0, "are taken");
	is_str(sandbox.id, id, "with a sandbox");
	ok(sandbox.active && sandbox.used_at == 100, "that has files");
	is_int(person_is_here(db, ALICE, &sandbox, &err), 1, "they are here");
	is_int(person_is_here(db, 8, &sandbox, &err), -1, "nobody else is");
	is_int(err.code, ERR_CONFLICT, "it is another's");
	sandbox.used_at++;
	is_int(person_is_here(db, ALICE, &sandbox, &err), -1,
	    "what is older is not the same");
	is_int(person_put(db, 8, buf_str(rows), true, &err), -1,
	    "nor is another's sandbox brought in");
	is_int(err.code, ERR_CONFLICT, "as it is there");
	clear();
	(void)store_sql("INSERT INTO moves VALUES (0, 8, 'b', 'gone')");
	(void)moves_begin(db, slot, ALICE, "b", &err);
	is_int(person_is_here(db, ALICE, &sandbox, &err), 0, "they are not");
	is_int(person_put(db, ALICE, buf_str(rows), false, &err), 0,
	    "they could come");
	is_int(store_sql("SELECT count(*) FROM sandboxes"), 0, "and have not");
	is_int(person_put(db, ALICE, buf_str(rows), true, &err), 0,
	    "they come");
	note("%s", err.text);
	is_int(person_rows(db, ALICE, &again, &err), 0, "and all rows");
	is_str(buf_str(&again), buf_str(rows),
	    "are the same, views that were there among them");
	is_int(state_of(db, ALICE), MOVE_NONE, "who comes has not gone");
	is_int(store_sql("SELECT count(*) FROM moves"), 1, "others have");
	is_int(store_sql("SELECT count(*) FROM rules WHERE rate = 9 AND quota "
			 "IS NULL AND blocked = 1"),
	    1, "the rule is as it was");
	(void)store_sql("DELETE FROM moves");
	(void)store_sql("INSERT INTO sandboxes (id, user_id, created_at, "
			"used_at, expires_at) VALUES "
			"('00000000000000000000000000000001', 9, 1, 1, 1)");
	is_int(person_is_here(db, 9, &sandbox, &err), -1, "another one there");
	(void)store_sql("DELETE FROM sandboxes WHERE user_id = 9");
}

/* The most that a person may have, of bytes that take six each. */
static void
test_most(struct db *db)
{
	auto_buf struct buf rows = BUF_INIT(PERSON_ROWS_MAX);
	struct person_sandbox sandbox;
	struct err err = { 0 };

	(void)store_sql("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT "
			"i + 1 FROM n WHERE i < 500) INSERT INTO views (id, "
			"user_id, kind, output, bytes, created_ms) SELECT "
			"i, 10, 'py', replace(hex(zeroblob(4190)), '0', "
			"char(27)), 8380, 5 FROM n");
	is_int(store_sql("SELECT count(*) FROM views WHERE user_id = 10"), 500,
	    "500 views of 4 MiB");
	is_int(person_rows(db, 10, &rows, &err), 0, "can be carried");
	ok(rows.len > (size_t)24 << 20, "in six times as much");
	is_int(person_look(db, buf_str(&rows), &sandbox, &err), 0, "and taken");
	is_str(sandbox.id, "", "without a sandbox");
	(void)store_sql("DELETE FROM views WHERE user_id = 10");
	is_int(person_put(db, 10, buf_str(&rows), true, &err), 0, "in");
	is_int(store_sql("SELECT sum(length(output)) FROM views "
			 "WHERE user_id = 10"),
	    500 * 8380, "as a whole");
	(void)store_sql("DELETE FROM views WHERE user_id = 10");
}

/* The rows with something else in a place; heap. */
static char *
changed(const char *rows, const char *path, const char *value)
{
	sqlite3 *h = NULL;
	sqlite3_stmt *s = NULL;
	char *text = NULL;

	if (sqlite3_open(":memory:", &h) == SQLITE_OK &&
	    sqlite3_prepare_v2(h, "SELECT json_replace(?1, ?2, json(?3))", -1,
		&s, NULL) == SQLITE_OK &&
	    sqlite3_bind_text(s, 1, rows, -1, NULL) == SQLITE_OK &&
	    sqlite3_bind_text(s, 2, path, -1, NULL) == SQLITE_OK &&
	    sqlite3_bind_text(s, 3, value, -1, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		text = xstrdup((const char *)sqlite3_column_text(s, 0));
	(void)sqlite3_finalize(s);
	(void)sqlite3_close(h);
	return text != NULL ? text : xstrdup(value);
}

/* Is a person of these rows refused, before anything is written? */
static void
is_refused(struct db *db, const char *rows, const char *what)
{
	struct person_sandbox sandbox;
	struct err err = { 0 };

	ok(person_look(db, rows, &sandbox, &err) != 0 ||
		person_put(db, ALICE, rows, false, &err) != 0,
	    what);
	is_int(err.code, ERR_INPUT, "is what came");
}

static void
test_hostile(struct db *db, const char *rows)
{
	static const struct {
		const char *path;
		const char *value;
		const char *what;
	} cases[] = {
		{ "$.views[0].id", "0", "an id of nobody" },
		{ "$.views[0].id", "-1", "an id below all" },
		{ "$.views[0].id", "9223372036854775807",
		    "an id that leaves none for others" },
		{ "$.views[0].id", "9223372036854775808", "no such number" },
		{ "$.views[0].id", "null", "no id" },
		{ "$.views[0].id", "\"5\"", "a text for an id" },
		{ "$.views[0].id", "5.5", "half an id" },
		{ "$.views[0]", "\"abc\"", "a view that is a text" },
		{ "$.views[0]", "[]", "a view that is a list" },
		{ "$.views", "{\"a\": 5}", "views with names" },
		{ "$.views[0].bytes", "-1", "a length below nothing" },
		{ "$.views[0].created_ms", "2000000000000000000",
		    "a time that cannot be counted on from" },
		{ "$.views[0].page", "9223372036854775807", "a last page" },
		{ "$.views[0].text", "null", "no text" },
		{ "$.views[0].text", "\"\\u0000\"", "a NUL" },
		{ "$.views[0].text", "\"\\\\\\u0000\"", "one after a \\" },
		{ "$.sandbox.id", "\"..\"", "an id that leads elsewhere" },
		{ "$.sandbox.id", "\"0000000000000000000000000000000/\"",
		    "one as long as an id" },
		{ "$.sandbox.id", "null", "a sandbox without an id" },
		{ "$.sandbox.state", "\"removing\"", "no such state" },
		{ "$.sandbox.used_at", "\"2000000000000000000\"",
		    "a time that hides in a text" },
		{ "$.sandbox.expires_at", "1e3", "a time with an exponent" },
		{ "$.sandbox.pinned", "2", "more than pinned" },
		{ "$.sandbox.cwd", "null", "nowhere" },
		{ "$.sandbox", "null", "names without a sandbox" },
		{ "$.sandbox", "\"x\"", "a sandbox that is a text" },
		{ "$.session.ended", "-1", "an end that there is not" },
		{ "$.names[0].kind", "\"socket\"", "no such name" },
		{ "$.names[0].name", "\"\"", "a name of nothing" },
		{ "$.rule.rate", "0", "no commands at all" },
		{ "$.rule.reason", "null", "no reason" },
		{ "$", "[", "a list that does not end" },
		{ "$", "", "nothing" },
	};
	struct err err = { 0 };

	clear();
	(void)store_sql("DELETE FROM views");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		auto_free char *bad = changed(rows, cases[i].path,
		    cases[i].value);

		is_refused(db, bad, cases[i].what);
	}
	is_refused(db,
	    "{\"names\": [], \"views\": [{\"id\": 5, \"kind\": \"py\", "
	    "\"text\": \"a\\x00b\"}]}",
	    "a NUL by another escape");
	is_refused(db, "{names: [], views: []}", "what is no JSON but JSON5");
	is_int(store_sql("SELECT count(*) FROM views"), 0, "nothing is there");
	is_int(person_put(db, ALICE, rows, true, &err), 0, "the rows are good");
}

int
main(void)
{
	auto_buf struct buf rows = BUF_INIT(PERSON_ROWS_MAX);
	struct db *db;
	struct db *admin;

	(void)store_make();
	slot = slot_of(ALICE);
	db = store_open(DB_NODE);
	admin = store_open(DB_ADMIN);
	make_alice(admin);
	test_states(db);
	test_people(db);
	test_rows(db, &rows);
	test_most(db);
	test_hostile(db, buf_str(&rows));
	test_gone(db);
	db_close(admin);
	db_close(db);
	return tap_done();
}
