/* SPDX-License-Identifier: MIT */
#include "store/person.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/row_id.h"

int
person_rows(struct db *db, int64_t user_id, struct buf *rows, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_PERSON_ROWS);

	db_bind_int(s, ":user_id", user_id);
	if (db_step(db, s, err) < 0)
		return -1;
	buf_adds(rows, db_column_text(s, 0));
	return db_column_int(s, 1) != 0 ? 0 : 1;
}

int
person_look(struct db *db, const char *rows, struct person_sandbox *sandbox,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_PERSON_LOOK);
	int row;

	db_bind_text(s, ":rows", rows);
	db_bind_int(s, ":last_id", ROW_ID_LAST);
	row = db_step(db, s, err);
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

/* They may have left this node before; what has expired gives way. */
static int
make_way(struct db *db, int64_t user_id, struct err *err)
{
	auto_stmt struct stmt *come = db_statement(db, STATEMENT_MOVES_COME);
	auto_stmt struct stmt *forget = db_statement(db,
	    STATEMENT_SANDBOX_FORGET_EXPIRED);

	db_bind_int(come, ":slot", slot_of(user_id));
	db_bind_int(come, ":user_id", user_id);
	db_bind_int(forget, ":user_id", user_id);
	return db_run(db, come, err) < 0 || db_run(db, forget, err) < 0 ? -1 :
									  0;
}

static int
put_rows(struct db *db, int64_t user_id, const char *rows, struct err *err)
{
	static const enum statement parts[] = { STATEMENT_PERSON_PUT_SANDBOX,
		STATEMENT_PERSON_PUT_SESSION, STATEMENT_PERSON_PUT_NAMES,
		STATEMENT_PERSON_PUT_VIEWS, STATEMENT_PERSON_PUT_RULE };

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		auto_stmt struct stmt *s = db_statement(db, parts[i]);

		db_bind_int(s, ":user_id", user_id);
		db_bind_text(s, ":rows", rows);
		if (db_run(db, s, err) < 0)
			return -1;
	}
	return 0;
}

int
person_put(struct db *db, int64_t user_id, const char *rows, bool keep,
    struct err *err)
{
	int result = db_begin(db, err);

	if (result == 0)
		result = make_way(db, user_id, err);
	if (result == 0)
		result = put_rows(db, user_id, rows, err);
	if (result == 0 && keep)
		return db_commit(db, err);
	db_rollback(db);
	return result;
}

int
person_is_here(struct db *db, int64_t user_id,
    const struct person_sandbox *sandbox, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_PERSON_HERE);
	int here = 0;
	int row;

	db_bind_int(s, ":user_id", user_id);
	db_bind_text(s, ":id", sandbox->id);
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
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_PERSON_OPEN);

	db_bind_int(s, ":user_id", user_id);
	return db_step(db, s, err) == 1 ? db_column_int(s, 0) : -1;
}
