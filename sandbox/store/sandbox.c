/* SPDX-License-Identifier: MIT */
#include "store/sandbox.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "store/db.h"
#include "store/names.h"
#include "store/row.h"

/* A sweeper that has not reported back after this long is taken for dead. */
#define SWEEP_RETRY_SECONDS 60

const char *const sandbox_states[] = {
	[SANDBOX_ACTIVE] = "active",
	[SANDBOX_EXPIRING] = "expiring",
	[SANDBOX_EXPIRED] = "expired",
	[SANDBOX_REMOVING] = "removing",
	NULL,
};

#define OF_SANDBOX(member) ROW_FIELD(struct sandbox, member)

static const struct row_field fields[] = { OF_SANDBOX(id), OF_SANDBOX(user_id),
	OF_SANDBOX(cwd), OF_SANDBOX(used_at), OF_SANDBOX(expires_at),
	OF_SANDBOX(pinned), OF_SANDBOX(used_bytes), OF_SANDBOX(used_files),
	OF_SANDBOX(named_files), ROW_END };

/* The one row of a statement, which is then stepped to its end.  1: none. */
static int
take_row(struct db *db, struct stmt *s, struct sandbox *sandbox,
    struct err *err)
{
	int result = db_step(db, s, err);

	if (result != 1)
		return result == 0 ? 1 : -1;
	*sandbox = (struct sandbox){
		.state = (enum sandbox_state)db_column_word(s,
		    row_column(s, "state"), sandbox_states)
	};
	row_read(s, fields, sandbox);
	return db_step(db, s, err);
}

int
sandbox_find(struct db *db, int64_t user_id, struct sandbox *sandbox,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_FIND);

	db_bind_int(s, ":user_id", user_id);
	return take_row(db, s, sandbox, err);
}

/* The user's expired rows give way to the new one. */
static int
insert(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct err *err)
{
	char id[SANDBOX_ID_LEN + 1];
	int64_t now = clock_wall_ms() / 1000;
	auto_stmt struct stmt *forget = db_statement(db,
	    STATEMENT_SANDBOX_FORGET_EXPIRED);
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_INSERT);

	db_bind_int(forget, ":user_id", user_id);
	if (db_run(db, forget, err) < 0)
		return -1;
	text_random_hex(id, SANDBOX_ID_LEN);
	db_bind_text(s, ":id", id);
	db_bind_int(s, ":user_id", user_id);
	db_bind_int(s, ":now", now);
	db_bind_int(s, ":expires_at", now + retention_seconds);
	return db_run(db, s, err) < 0 ? -1 : 0;
}

int
sandbox_create(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct sandbox *sandbox, bool *created, struct err *err)
{
	int result;

	if (db_begin(db, err) != 0)
		return -1;
	result = sandbox_find(db, user_id, sandbox, err);
	*created = result == 1 ||
	    (result == 0 && sandbox->state != SANDBOX_ACTIVE);
	if (*created) {
		result = insert(db, user_id, retention_seconds, err);
		if (result == 0)
			result = sandbox_find(db, user_id, sandbox, err);
		if (result == 1)
			result = err_set(err, ERR_SYSTEM,
			    "a new sandbox is not there");
	}
	if (result == 0 && db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return -1;
}

int
sandbox_give_up(struct db *db, int64_t user_id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_GIVE_UP);

	db_bind_int(s, ":user_id", user_id);
	db_bind_int(s, ":now", clock_wall_ms() / 1000);
	return db_one(db_run(db, s, err));
}

bool
sandbox_is_usable(const struct sandbox *sandbox)
{
	return sandbox->state == SANDBOX_ACTIVE &&
	    (sandbox->pinned || sandbox->expires_at > clock_wall_ms() / 1000);
}

int
sandbox_touch(struct db *db, const char *id, int64_t retention_seconds,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_TOUCH);
	int64_t now = clock_wall_ms() / 1000;

	db_bind_int(s, ":now", now);
	db_bind_int(s, ":expires_at", now + retention_seconds);
	db_bind_text(s, ":id", id);
	return db_one(db_run_quick(db, s, err));
}

int
sandbox_set_cwd(struct db *db, const char *id, const char *cwd, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_SET_CWD);

	db_bind_text(s, ":cwd", cwd);
	db_bind_text(s, ":id", id);
	return db_one(db_run_quick(db, s, err));
}

int
sandbox_set_usage(struct db *db, const char *id, int64_t bytes, int64_t files,
    bool renamed, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db,
	    STATEMENT_SANDBOX_SET_USAGE);

	db_bind_int(s, ":bytes", bytes);
	db_bind_int(s, ":files", files);
	db_bind_int(s, ":named", renamed ? -1 : INT64_MAX);
	db_bind_text(s, ":id", id);
	return db_one(db_run_quick(db, s, err));
}

int
sandbox_take_expired(struct db *db, struct sandbox *sandbox, struct err *err)
{
	auto_stmt struct stmt *active = db_statement(db,
	    STATEMENT_SANDBOX_TAKE_ACTIVE);
	auto_stmt struct stmt *left = db_statement(db,
	    STATEMENT_SANDBOX_TAKE_LEFT);
	int64_t now = clock_wall_ms() / 1000;
	int result;

	db_bind_int(active, ":now", now);
	result = take_row(db, active, sandbox, err);
	if (result == 1) {
		db_bind_int(left, ":now", now);
		db_bind_int(left, ":before", now - SWEEP_RETRY_SECONDS);
		result = take_row(db, left, sandbox, err);
	}
	return result;
}

int
sandbox_retry(struct db *db, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_RETRY);

	return db_run(db, s, err);
}

int
sandbox_gone(struct db *db, const char *id, struct err *err)
{
	auto_stmt struct stmt *drop = db_statement(db,
	    STATEMENT_SANDBOX_GONE_DELETE);
	auto_stmt struct stmt *expire = db_statement(db,
	    STATEMENT_SANDBOX_GONE_EXPIRE);
	int changes;

	/* it is not active: none can be kept any more */
	if (names_forget(db, id, err) != 0)
		return -1;
	db_bind_text(drop, ":id", id);
	db_bind_text(expire, ":id", id);
	changes = db_run(db, drop, err);
	return db_one(changes != 0 ? changes : db_run(db, expire, err));
}

int
sandbox_remove(struct db *db, const char *id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_REMOVE);

	db_bind_int(s, ":now", clock_wall_ms() / 1000);
	db_bind_text(s, ":id", id);
	return db_one(db_run(db, s, err));
}

int64_t
sandbox_next_expiry(struct db *db, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db,
	    STATEMENT_SANDBOX_NEXT_EXPIRY);
	int64_t left;

	if (db_step(db, s, err) != 1)
		return -1;
	left = db_column_int(s, 0) - clock_wall_ms() / 1000;
	return left > 0 ? left : 1;
}

int
sandbox_count(struct db *db, struct sandbox_counts *counts, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SANDBOX_COUNT);

	db_bind_int(s, ":now", clock_wall_ms() / 1000);
	if (db_step(db, s, err) != 1)
		return -1;
	*counts = (struct sandbox_counts){
		.active = db_column_int(s, 0),
		.overdue = db_column_int(s, 1),
		.expiring = db_column_int(s, 2),
		.removing = db_column_int(s, 3),
	};
	return 0;
}
