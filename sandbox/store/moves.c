/* SPDX-License-Identifier: MIT */
#include "store/moves.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/basics.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/job.h"

static const char *const move_states[] = { [MOVE_NONE] = "",
	[MOVE_LEAVING] = "leaving",
	[MOVE_GONE] = "gone",
	[MOVE_COME] = "come",
	NULL };

enum move_state
moves_find(struct db *db, int slot, int64_t user_id,
    char to[MOVES_NODE_MAX + 1], struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_MOVES_FIND,
	    DB_VALUES(BIND(":slot", slot), BIND(":user_id", user_id)));
	int row = db_step(db, s, err);

	if (row != 1)
		return row < 0 ? MOVE_UNKNOWN : MOVE_NONE;
	(void)snprintf(to, MOVES_NODE_MAX + 1, "%s", db_column_text(s, 1));
	return (enum move_state)db_column_word(s, 0, move_states);
}

int
moves_begin(struct db *db, int slot, int64_t user_id, const char *to,
    struct err *err)
{
	return db_change_one(db, STATEMENT_MOVES_BEGIN,
	    DB_VALUES(BIND(":slot", slot), BIND(":user_id", user_id),
		BIND(":node", to)),
	    err);
}

int
moves_stay(struct db *db, int slot, int64_t user_id, struct err *err)
{
	return db_change_any(db, STATEMENT_MOVES_STAY,
	    DB_VALUES(BIND(":slot", slot), BIND(":user_id", user_id)), err);
}

/* Run several changes; the first error ends them. */
static int
moves_change_all(struct db *db, const enum statement *changes, size_t count,
    const struct db_value *values, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (db_change(db, changes[i], values, err) < 0)
			return -1;
	return 0;
}

int
moves_end(struct db *db, int slot, int64_t user_id, struct err *err)
{
	/* The sandbox's session and names go with its row. */
	static const enum statement drops[] = { STATEMENT_VIEW_FORGET,
		STATEMENT_PERSON_DROP_RULE, STATEMENT_SANDBOX_FORGET_EXPIRED,
		STATEMENT_PERSON_DROP_SANDBOX };
	int result;

	if (db_begin(db, err) != 0)
		return -1;
	result = db_change_one(db, STATEMENT_MOVES_END,
	    DB_VALUES(BIND(":slot", slot), BIND(":user_id", user_id)), err);
	if (result == 0)
		result = moves_change_all(db, drops,
		    sizeof(drops) / sizeof(*drops),
		    DB_VALUES(BIND(":user_id", user_id)), err);
	return db_end(db, result, err);
}

static int
moves_has_slot(void *arg, int64_t user_id)
{
	const int *slot = arg;

	return slot_of(user_id) == *slot;
}

int
moves_forget(struct db *db, int slot, struct err *err)
{
	return db_change_any(db, STATEMENT_MOVES_FORGET,
	    DB_VALUES(BIND(":slot", slot)), err);
}

/* Write one row for the slot, and end the caller's transaction. */
static int
moves_say_slot(struct db *db, int slot, const char *node, enum move_state state,
    struct err *err)
{
	int result = moves_forget(db, slot, err);

	if (result == 0)
		result = db_change_any(db, STATEMENT_MOVES_SAY_SLOT,
		    DB_VALUES(BIND(":slot", slot), BIND(":node", node),
			BIND(":state", move_states[state])),
		    err);
	return db_end(db, result, err);
}

int
moves_end_slot(struct db *db, int slot, const char *to, struct err *err)
{
	int left;

	if (db_begin(db, err) != 0)
		return -1;
	left = moves_each_person(db, moves_has_slot, &slot, err);
	if (left == 0)
		return moves_say_slot(db, slot, to, MOVE_GONE, err);
	db_rollback(db);
	return left > 0 ? 1 : -1;
}

int
moves_come_slot(struct db *db, int slot, const char *version, struct err *err)
{
	if (db_begin(db, err) != 0)
		return -1;
	return moves_say_slot(db, slot, version, MOVE_COME, err);
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

/* ---- rows of a person ---- */

int
person_rows(struct db *db, int64_t user_id, struct buf *rows, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_PERSON_ROWS,
	    DB_VALUES(BIND(":user_id", user_id)));

	if (db_step(db, s, err) < 0)
		return -1;
	buf_adds(rows, db_column_text(s, 0));
	return db_column_int(s, 1) != 0 ? 0 : 1;
}

int
person_look(struct db *db, const char *rows, struct person_sandbox *sandbox,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_PERSON_LOOK,
	    DB_VALUES(BIND(":rows", rows), BIND(":last_id", ROW_ID_LAST)));
	int row = db_step(db, s, err);

	if (row != 1)
		return row < 0 ? -1 : err_set(err, ERR_INPUT, "a row is wrong");
	*sandbox = (struct person_sandbox){
		.active = db_column_int(s, 1) != 0,
		.used_at = db_column_int(s, 2),
	};
	(void)snprintf(sandbox->id, sizeof(sandbox->id), "%s",
	    db_column_text(s, 0));
	if (db_column_is_null(s, 0) ||
	    (strlen(db_column_text(s, 0)) == SANDBOX_ID_LEN &&
		strspn(sandbox->id, "0123456789abcdef") == SANDBOX_ID_LEN))
		return 0;
	return err_set(err, ERR_INPUT, "a sandbox's id is wrong");
}

/* Insert the rows of a person, who may have left this node before. */
static int
person_insert(struct db *db, int64_t user_id, const char *rows, struct err *err)
{
	static const enum statement parts[] = { STATEMENT_PERSON_PUT_SANDBOX,
		STATEMENT_PERSON_PUT_SESSION, STATEMENT_PERSON_PUT_NAMES,
		STATEMENT_PERSON_PUT_VIEWS, STATEMENT_PERSON_PUT_RULE };

	if (db_change(db, STATEMENT_MOVES_COME,
		DB_VALUES(BIND(":slot", slot_of(user_id)),
		    BIND(":user_id", user_id)),
		err) < 0 ||
	    db_change(db, STATEMENT_SANDBOX_FORGET_EXPIRED,
		DB_VALUES(BIND(":user_id", user_id)), err) < 0)
		return -1;
	return moves_change_all(db, parts, sizeof(parts) / sizeof(*parts),
	    DB_VALUES(BIND(":user_id", user_id), BIND(":rows", rows)), err);
}

int
person_put(struct db *db, int64_t user_id, const char *rows, bool keep,
    struct err *err)
{
	int result = db_begin(db, err);

	if (result == 0)
		result = person_insert(db, user_id, rows, err);
	if (result == 0 && keep)
		return db_commit(db, err);
	db_rollback(db);
	return result;
}

int
person_is_here(struct db *db, int64_t user_id,
    const struct person_sandbox *sandbox, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_PERSON_HERE,
	    DB_VALUES(BIND(":user_id", user_id), BIND(":id", sandbox->id)));
	int here = 0;
	int row;

	while ((row = db_step(db, s, err)) == 1) {
		const char *state = db_column_text(s, 1);

		if (strcmp(db_column_text(s, 0), sandbox->id) != 0) {
			if (!sandbox->active)
				continue;
			return err_set(err, ERR_CONFLICT,
			    "user %" PRId64 " has a sandbox there already, %s",
			    user_id, db_column_text(s, 0));
		}
		if (strcmp(state, "expired") == 0 && sandbox->active)
			continue;
		if (db_column_int(s, 2) != user_id ||
		    strcmp(state, sandbox->active ? "active" : "expired") != 0)
			return err_set(err, ERR_CONFLICT,
			    "sandbox %s is there, and %s", sandbox->id, state);
		if (db_column_int(s, 3) < sandbox->used_at)
			return err_set(err, ERR_CONFLICT,
			    "an older copy of sandbox %s is there: let it "
			    "expire",
			    sandbox->id);
		here = 1;
	}
	return row < 0 ? -1 : here;
}

int64_t
person_open(struct db *db, int64_t user_id, struct err *err)
{
	return db_number(db, STATEMENT_PERSON_OPEN,
	    DB_VALUES(BIND(":user_id", user_id)), err);
}
