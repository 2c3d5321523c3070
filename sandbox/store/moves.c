/* SPDX-License-Identifier: MIT */
#include "store/moves.h"

#include <stdio.h>

#include "base/err.h"
#include "protocol/node_table.h"
#include "store/db.h"

static const char *const states[] = { [MOVE_NONE] = "",
	[MOVE_LEAVING] = "leaving",
	[MOVE_GONE] = "gone",
	[MOVE_COME] = "come",
	NULL };

enum move_state
moves_find(struct db *db, int slot, int64_t user_id,
    char to[MOVES_NODE_MAX + 1], struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_MOVES_FIND);
	int row;

	db_bind_int(s, ":slot", slot);
	db_bind_int(s, ":user_id", user_id);
	row = db_step(db, s, err);
	if (row != 1)
		return row < 0 ? MOVE_UNKNOWN : MOVE_NONE;
	(void)snprintf(to, MOVES_NODE_MAX + 1, "%s", db_column_text(s, 1));
	return (enum move_state)db_column_word(s, 0, states);
}

/* One change of a person's; how many rows it changed, or -1. */
static int
change(struct db *db, enum statement which, int slot, int64_t user_id,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);

	db_bind_int(s, ":slot", slot);
	db_bind_int(s, ":user_id", user_id);
	return db_run(db, s, err);
}

int
moves_begin(struct db *db, int slot, int64_t user_id, const char *to,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_MOVES_BEGIN);
	int changes;

	db_bind_int(s, ":slot", slot);
	db_bind_int(s, ":user_id", user_id);
	db_bind_text(s, ":node", to);
	changes = db_run(db, s, err);
	return changes < 0 ? -1 : changes == 0;
}

int
moves_stay(struct db *db, int slot, int64_t user_id, struct err *err)
{
	return change(db, STATEMENT_MOVES_STAY, slot, user_id, err) < 0 ? -1 :
									  0;
}

/* Drop the person's rows; the sandbox's session and names go with it. */
static int
drop_rows(struct db *db, int64_t user_id, struct err *err)
{
	static const enum statement drops[] = { STATEMENT_VIEW_FORGET,
		STATEMENT_PERSON_DROP_RULE, STATEMENT_SANDBOX_FORGET_EXPIRED,
		STATEMENT_PERSON_DROP_SANDBOX };

	for (size_t i = 0; i < sizeof(drops) / sizeof(*drops); i++) {
		auto_stmt struct stmt *s = db_statement(db, drops[i]);

		db_bind_int(s, ":user_id", user_id);
		if (db_run(db, s, err) < 0)
			return -1;
	}
	return 0;
}

int
moves_end(struct db *db, int slot, int64_t user_id, struct err *err)
{
	int changes;

	if (db_begin(db, err) != 0)
		return -1;
	changes = change(db, STATEMENT_MOVES_END, slot, user_id, err);
	if (changes == 1 && drop_rows(db, user_id, err) == 0 &&
	    db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return changes == 0 ? 1 : -1;
}

static int
is_in(void *arg, int64_t user_id)
{
	const int *slot = arg;

	return slot_of(user_id) == *slot;
}

int
moves_forget(struct db *db, int slot, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_MOVES_FORGET);

	db_bind_int(s, ":slot", slot);
	return db_run(db, s, err) < 0 ? -1 : 0;
}

/* Write one row for the slot, and end the caller's transaction. */
static int
say_slot(struct db *db, int slot, const char *node, enum move_state state,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_MOVES_SAY_SLOT);

	db_bind_int(s, ":slot", slot);
	db_bind_text(s, ":node", node);
	db_bind_text(s, ":state", states[state]);
	if (moves_forget(db, slot, err) == 0 && db_run(db, s, err) == 1 &&
	    db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return -1;
}

int
moves_end_slot(struct db *db, int slot, const char *to, struct err *err)
{
	int left;

	if (db_begin(db, err) != 0)
		return -1;
	left = moves_each_person(db, is_in, &slot, err);
	if (left == 0)
		return say_slot(db, slot, to, MOVE_GONE, err);
	db_rollback(db);
	return left > 0 ? 1 : -1;
}

int
moves_come_slot(struct db *db, int slot, const char *version, struct err *err)
{
	if (db_begin(db, err) != 0)
		return -1;
	return say_slot(db, slot, version, MOVE_COME, err);
}

int
moves_each_person(struct db *db, moves_fn fn, void *arg, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_LIST_PEOPLE);
	int result = 0;
	int row = 0;

	while (result == 0 && (row = db_step(db, s, err)) == 1)
		result = fn(arg, db_column_int(s, 0));
	return row < 0 ? -1 : result;
}
