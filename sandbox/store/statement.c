/* SPDX-License-Identifier: MIT */
/* SQLite's statements: bound by name, stepped in their turn, read by column. */
#include "connection.h"

#include <stdlib.h>

#include "../base/err.h"
#include "../base/log.h"

/* How long a change waits for its turn; the front has three seconds for its
 * whole answer. */
#define FRONT_TURN_MS 1000
#define TURN_MS 10000

void
statement_reset(struct stmt *s)
{
	(void)sqlite3_reset(connection_stmt(s));
	(void)sqlite3_clear_bindings(connection_stmt(s));
}

/* A name that is not in the statement has index 0, which SQLite refuses. */
static void
bound(sqlite3_stmt *h, const char *name, int result)
{
	if (result == SQLITE_OK)
		return;
	log_err("binding %s to %s: %s", name, sqlite3_sql(h),
	    sqlite3_errstr(result));
	abort();
}

void
statement_bind_int(struct stmt *s, const char *name, int64_t value)
{
	sqlite3_stmt *h = connection_stmt(s);

	bound(h, name,
	    sqlite3_bind_int64(h, sqlite3_bind_parameter_index(h, name),
		value));
}

void
statement_bind_text(struct stmt *s, const char *name, const char *text)
{
	sqlite3_stmt *h = connection_stmt(s);

	bound(h, name,
	    sqlite3_bind_text(h, sqlite3_bind_parameter_index(h, name), text,
		-1, SQLITE_TRANSIENT));
}

/* What changes something, and is not inside a transaction, begins one. */
static int
take_lock(struct connection *c, sqlite3_stmt *h, struct err *err)
{
	if (sqlite3_stmt_readonly(h) != 0 ||
	    sqlite3_get_autocommit(c->handle) == 0 ||
	    write_lock_take(&c->lock,
		c->db.role == DB_FRONT ? FRONT_TURN_MS : TURN_MS))
		return 0;
	(void)err_set(err, ERR_BUSY, "database: others write all the time");
	driver_group_error(&c->db, err);
	return -1;
}

int
statement_step(struct stmt *s, struct err *err)
{
	struct connection *c = connection_of(s->db);
	sqlite3_stmt *h = connection_stmt(s);
	int result;

	if (take_lock(c, h, err) != 0)
		return -1;
	result = sqlite3_step(h);
	if (result == SQLITE_ROW)
		return 1;
	if (result != SQLITE_DONE) {
		(void)connection_error(c, err);
		/* An automatic transaction ends with its statement. */
		(void)sqlite3_reset(h);
	}
	/* A transaction is over, by a commit or without. */
	if (sqlite3_get_autocommit(c->handle) != 0)
		write_lock_give(&c->lock);
	return result == SQLITE_DONE ? 0 : -1;
}

int
statement_changes(const struct stmt *s)
{
	return sqlite3_changes(connection_of(s->db)->handle);
}

int64_t
statement_last_id(const struct db *db)
{
	return sqlite3_last_insert_rowid(connection_of(db)->handle);
}

int64_t
statement_column_int(const struct stmt *s, int column)
{
	return sqlite3_column_int64(connection_stmt(s), column);
}

const char *
statement_column_text(const struct stmt *s, int column)
{
	return (const char *)sqlite3_column_text(connection_stmt(s), column);
}

bool
statement_column_is_null(const struct stmt *s, int column)
{
	return sqlite3_column_type(connection_stmt(s), column) == SQLITE_NULL;
}
