/* SPDX-License-Identifier: MIT */
/* People who move to another node: how far they are, and their rows. */
#include "sandbox/store/moves.h"

#include "sandbox/protocol/node_table.h"
#include "sandbox/store/person.h"
#include "sandbox/store/rule.h"
#include "sandbox/store/sandbox.h"
#include "sandbox/store/session.h"
#include "sandbox/store/view.h"
#include "store.h"

#define ALICE 7

static int slot;
static char id[SANDBOX_ID_LEN + 1];

static char code[] = "print(1)";
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
	is_int(moves_forget(db, slot, &err), 0, "and forgotten");
	is_int(state_of(db, ALICE), MOVE_NONE, "with all");
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

/* Out of this database and in again: the same. */
static void
test_rows(struct db *db, struct buf *rows)
{
	struct person_sandbox sandbox;
	struct err err = { 0 };
	auto_buf struct buf again = BUF_INIT(PERSON_ROWS_MAX);

	is_int(person_rows(db, ALICE, rows, &err), 0, "all rows");
	is_int(person_check(buf_str(rows), rows->len, &sandbox, &err), 0,
	    "are taken");
	is_str(sandbox.id, id, "with a sandbox");
	ok(sandbox.active && sandbox.used_at == 100, "that has files");
	is_int(person_is_here(db, ALICE, &sandbox, &err), 1, "they are here");
	is_int(person_is_here(db, 8, &sandbox, &err), -1, "nobody else is");
	is_int(err.code, ERR_CONFLICT, "it is another's");
	sandbox.used_at++;
	is_int(person_is_here(db, ALICE, &sandbox, &err), -1,
	    "what is older is not the same");
	(void)store_sql("DELETE FROM sandboxes");
	(void)store_sql("DELETE FROM sessions");
	(void)store_sql("DELETE FROM names");
	(void)store_sql("DELETE FROM rules");
	(void)store_sql("INSERT INTO moves VALUES (0, 8, 'b', 'gone')");
	(void)moves_begin(db, slot, ALICE, "b", &err);
	is_int(person_is_here(db, ALICE, &sandbox, &err), 0, "they are not");
	is_int(person_put(db, ALICE, buf_str(rows), rows->len, &err), 0,
	    "they come");
	note("%s", err.text);
	is_int(person_rows(db, ALICE, &again, &err), 0, "and all rows");
	ok(again.len == rows->len &&
		memcmp(again.data, rows->data, rows->len) == 0,
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
}

/* A view's id is the number behind its table's. */
static void
test_ids(const struct buf *rows)
{
	static const int64_t ids[] = { 0, -1, INT64_MAX, INT64_MIN };
	auto_buf struct buf bad = BUF_INIT(PERSON_ROWS_MAX);
	struct person_sandbox sandbox;
	struct err err = { 0 };
	char *at;

	buf_add(&bad, rows->data, rows->len);
	at = memmem(bad.data, bad.len, "x.txt\x03", 6);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		memcpy(at + 6, &ids[i], sizeof(ids[i]));
		is_int(person_check(bad.data, bad.len, &sandbox, &err), -1,
		    "no id that leaves none for others");
	}
}

/* What is cut, or of a table that there is not, or begins anew. */
static void
test_hostile(const struct buf *rows)
{
	struct person_sandbox sandbox;
	struct err err = { 0 };
	auto_buf struct buf bad = BUF_INIT(2 * PERSON_ROWS_MAX);
	int taken = 0;

	for (size_t len = 0; len < rows->len; len++)
		taken += person_check(rows->data, len, &sandbox, &err) == 0;
	is_int(taken, 6, "of all beginnings those that end with a row");
	buf_add(&bad, rows->data, rows->len);
	buf_add(&bad, rows->data, rows->len);
	is_int(person_check(bad.data, bad.len, &sandbox, &err), -1,
	    "no second sandbox");
	is_int(err.code, ERR_INPUT, "it is what came");
	is_int(person_check("\x05", 1, &sandbox, &err), -1, "no such table");
	is_int(person_check("\x02", 1, &sandbox, &err), -1,
	    "no names without a sandbox");
	buf_reset(&bad);
	buf_add(&bad, rows->data, rows->len);
	bad.data[5] = '/';
	is_int(person_check(bad.data, bad.len, &sandbox, &err), -1,
	    "no id that leads elsewhere");
	bad.data[5] = '\0';
	is_int(person_check(bad.data, bad.len, &sandbox, &err), -1, "no NUL");
	memset(bad.data + 1, 0xff, 4);
	is_int(person_check(bad.data, bad.len, &sandbox, &err), -1,
	    "no text beyond the end");
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
	test_ids(&rows);
	test_hostile(&rows);
	(void)store_sql("DELETE FROM sandboxes WHERE user_id = 9");
	test_gone(db);
	db_close(admin);
	db_close(db);
	return tap_done();
}
