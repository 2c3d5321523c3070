#include "sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "db.h"

/* A sweeper that has not reported back after this long is taken for dead. */
#define SWEEP_RETRY_SECONDS 60

static const char *const state_names[] = {
	[SANDBOX_ACTIVE] = "active",
	[SANDBOX_EXPIRING] = "expiring",
	[SANDBOX_EXPIRED] = "expired",
	[SANDBOX_REMOVING] = "removing",
};

const char *
sandbox_state_name(enum sandbox_state state)
{
	return state_names[state];
}

static int64_t
now_seconds(void)
{
	return clock_wall_ms() / 1000;
}

static enum sandbox_state
read_state(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	for (int i = SANDBOX_ACTIVE; text != NULL && i <= SANDBOX_REMOVING;
	     i++) {
		if (strcmp(state_names[i], text) == 0)
			return (enum sandbox_state)i;
	}
	log_err("a sandbox is in an unknown state");
	abort();
}

static void
read_text(sqlite3_stmt *s, int column, char *text, size_t size)
{
	const char *value = (const char *)sqlite3_column_text(s, column);

	(void)snprintf(text, size, "%s", value != NULL ? value : "");
}

void
sandbox_row_read(sqlite3_stmt *s, struct sandbox *sandbox)
{
	*sandbox = (struct sandbox){
		.user_id = db_column_int(s, 1),
		.state = read_state(s, 2),
		.created_at = db_column_int(s, 4),
		.used_at = db_column_int(s, 5),
		.expires_at = db_column_int(s, 6),
		.pinned = db_column_int(s, 7) != 0,
		.used_bytes = db_column_int(s, 8),
		.used_files = db_column_int(s, 9),
	};
	read_text(s, 0, sandbox->id, sizeof(sandbox->id));
	read_text(s, 3, sandbox->cwd, sizeof(sandbox->cwd));
}

/* The one row of a statement, which is then stepped to its end.  1: none. */
static int
take_row(struct db *db, sqlite3_stmt *s, struct sandbox *sandbox,
    struct err *err)
{
	int result = db_step(db, s, err);

	if (result == 0)
		return 1;
	if (result < 0)
		return -1;
	sandbox_row_read(s, sandbox);
	return db_step(db, s, err);
}

int
sandbox_find(struct db *db, int64_t user_id, struct sandbox *sandbox,
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_SANDBOX_FIND);

	db_bind_int(s, ":user_id", user_id);
	return take_row(db, s, sandbox, err);
}

static int
make_id(char id[static SANDBOX_ID_LEN + 1], struct err *err)
{
	unsigned char bytes[SANDBOX_ID_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_system(err, "getrandom");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* The user's expired rows give way to the new one. */
static int
insert(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct err *err)
{
	char id[SANDBOX_ID_LEN + 1];
	int64_t now = now_seconds();
	auto_stmt sqlite3_stmt *forget = db_statement(db,
	    STATEMENT_SANDBOX_FORGET_EXPIRED);
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_SANDBOX_INSERT);

	if (make_id(id, err) != 0)
		return -1;
	db_bind_int(forget, ":user_id", user_id);
	if (db_run(db, forget, NULL, err) != 0)
		return -1;
	db_bind_text(s, ":id", id);
	db_bind_int(s, ":user_id", user_id);
	db_bind_int(s, ":now", now);
	db_bind_int(s, ":expires_at", now + retention_seconds);
	return db_run(db, s, NULL, err);
}

/* Inside the transaction of sandbox_create(). */
static int
find_or_insert(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct sandbox *sandbox, bool *created, struct err *err)
{
	int result = sandbox_find(db, user_id, sandbox, err);

	*created = result == 1 ||
	    (result == 0 && sandbox->state != SANDBOX_ACTIVE);
	if (result < 0)
		return -1;
	if (!*created)
		return 0;
	if (insert(db, user_id, retention_seconds, err) != 0)
		return -1;
	if (sandbox_find(db, user_id, sandbox, err) == 0)
		return 0;
	return err_set(err, ERR_SYSTEM, "a new sandbox is not there");
}

int
sandbox_create(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct sandbox *sandbox, bool *created, struct err *err)
{
	if (db_begin(db, err) != 0)
		return -1;
	if (find_or_insert(db, user_id, retention_seconds, sandbox, created,
		err) == 0 &&
	    db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return err_wrap(err, "create a sandbox");
}

/* Run a change of one sandbox.  1: it was not in the state that it needs. */
static int
change(struct db *db, sqlite3_stmt *s, const char *id, struct err *err)
{
	int changes = 0;

	db_bind_text(s, ":id", id);
	if (db_run(db, s, &changes, err) != 0)
		return err_wrap(err, "sandbox %s", id);
	return changes == 1 ? 0 : 1;
}

/* The same for what does no harm when a power cut undoes it: nobody waits for
 * the disk. */
static int
change_quickly(struct db *db, sqlite3_stmt *s, const char *id, struct err *err)
{
	int result;

	db_lasting(db, false);
	result = change(db, s, id, err);
	db_lasting(db, true);
	return result;
}

int
sandbox_touch(struct db *db, const char *id, int64_t retention_seconds,
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_SANDBOX_TOUCH);
	int64_t now = now_seconds();

	db_bind_int(s, ":now", now);
	db_bind_int(s, ":expires_at", now + retention_seconds);
	return change_quickly(db, s, id, err);
}

int
sandbox_set_cwd(struct db *db, const char *id, const char *cwd, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_SANDBOX_SET_CWD);

	db_bind_text(s, ":cwd", cwd);
	return change_quickly(db, s, id, err);
}

int
sandbox_set_usage(struct db *db, const char *id, int64_t bytes, int64_t files,
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db,
	    STATEMENT_SANDBOX_SET_USAGE);

	db_bind_int(s, ":bytes", bytes);
	db_bind_int(s, ":files", files);
	return change_quickly(db, s, id, err);
}

static int
take_left(struct db *db, int64_t now, struct sandbox *sandbox, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db,
	    STATEMENT_SANDBOX_TAKE_LEFT);

	db_bind_int(s, ":now", now);
	db_bind_int(s, ":before", now - SWEEP_RETRY_SECONDS);
	return take_row(db, s, sandbox, err);
}

int
sandbox_take_expired(struct db *db, struct sandbox *sandbox, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db,
	    STATEMENT_SANDBOX_TAKE_ACTIVE);
	int64_t now = now_seconds();
	int result;

	db_bind_int(s, ":now", now);
	result = take_row(db, s, sandbox, err);
	if (result == 1)
		result = take_left(db, now, sandbox, err);
	return result < 0 ? err_wrap(err, "find expired sandboxes") : result;
}

int
sandbox_retry(struct db *db, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_SANDBOX_RETRY);
	int changes = 0;

	if (db_run(db, s, &changes, err) != 0)
		return -1;
	return changes;
}

int
sandbox_gone(struct db *db, const char *id, struct err *err)
{
	auto_stmt sqlite3_stmt *drop = db_statement(db,
	    STATEMENT_SANDBOX_GONE_DELETE);
	auto_stmt sqlite3_stmt *expire = db_statement(db,
	    STATEMENT_SANDBOX_GONE_EXPIRE);
	int result = change(db, drop, id, err);

	return result == 1 ? change(db, expire, id, err) : result;
}

int
sandbox_remove(struct db *db, const char *id, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_SANDBOX_REMOVE);

	db_bind_int(s, ":now", now_seconds());
	return change(db, s, id, err);
}

int64_t
sandbox_next_expiry(struct db *db, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db,
	    STATEMENT_SANDBOX_NEXT_EXPIRY);
	int64_t left;

	if (db_step(db, s, err) != 1)
		return -1;
	left = db_column_int(s, 0) - now_seconds();
	return left > 0 ? left : 1;
}
