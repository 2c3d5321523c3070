/* SPDX-License-Identifier: MIT */
/* Statements of sql/: bound by name, stepped in their turn, read by column. */
#include "connection.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"

/* How long a change waits for its turn; the front has three seconds for its
 * whole answer. */
#define FRONT_TURN_MS 1000
#define TURN_MS 10000

sqlite3_stmt *
db_statement(struct db *db, enum statement which)
{
	sqlite3_stmt *s = db->statements[which];

	if (s == NULL) {
		log_err("statement %s is not for this program",
		    statement_texts[which].name);
		abort();
	}
	db_statement_done(&s);
	return s;
}

void
db_statement_done(sqlite3_stmt **stmt)
{
	(void)sqlite3_reset(*stmt);
	(void)sqlite3_clear_bindings(*stmt);
}

/* A name that is not in the statement has index 0, which SQLite refuses. */
static void
bound(sqlite3_stmt *s, const char *name, int result)
{
	if (result == SQLITE_OK)
		return;
	log_err("binding %s to %s: %s", name, sqlite3_sql(s),
	    sqlite3_errstr(result));
	abort();
}

void
db_bind_int(sqlite3_stmt *s, const char *name, int64_t value)
{
	bound(s, name,
	    sqlite3_bind_int64(s, sqlite3_bind_parameter_index(s, name),
		value));
}

void
db_bind_text(sqlite3_stmt *s, const char *name, const char *text)
{
	bound(s, name,
	    sqlite3_bind_text(s, sqlite3_bind_parameter_index(s, name),
		text != NULL ? text : "", -1, SQLITE_TRANSIENT));
}

/* What changes something, and is not inside a transaction, begins one. */
static int
take_lock(struct db *db, sqlite3_stmt *s, struct err *err)
{
	if (sqlite3_stmt_readonly(s) != 0 ||
	    sqlite3_get_autocommit(db->handle) == 0 ||
	    write_lock_take(&db->lock,
		db->role == DB_FRONT ? FRONT_TURN_MS : TURN_MS))
		return 0;
	(void)err_set(err, ERR_BUSY, "database: others write all the time");
	connection_group_error(db, err);
	return -1;
}

int
db_step(struct db *db, sqlite3_stmt *s, struct err *err)
{
	int result;

	if (take_lock(db, s, err) != 0)
		return -1;
	result = sqlite3_step(s);
	if (result == SQLITE_ROW)
		return 1;
	if (result != SQLITE_DONE) {
		(void)connection_error(db, err);
		/* An automatic transaction ends with its statement. */
		(void)sqlite3_reset(s);
	}
	/* A transaction is over, by a commit or without. */
	if (sqlite3_get_autocommit(db->handle) != 0)
		write_lock_give(&db->lock);
	return result == SQLITE_DONE ? 0 : -1;
}

int
db_run(struct db *db, sqlite3_stmt *s, struct err *err)
{
	int result = db_step(db, s, err);

	if (result == 1) {
		log_err("a row that nobody asked for: %s", sqlite3_sql(s));
		abort();
	}
	return result < 0 ? -1 : sqlite3_changes(db->handle);
}

int
db_run_quick(struct db *db, sqlite3_stmt *s, struct err *err)
{
	int changes;

	db_lasting(db, false);
	changes = db_run(db, s, err);
	db_lasting(db, true);
	db->unflushed |= changes > 0;
	return changes;
}

int
db_prune(struct db *db, enum statement which, int64_t older_than_ms, int most,
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, which);
	int changes;

	db_bind_int(s, ":before_ms", clock_wall_ms() - older_than_ms);
	db_bind_int(s, ":most", most);
	changes = db_run(db, s, err);
	return changes < 0 ? err_wrap(err, "prune") : changes;
}

int64_t
db_last_id(struct db *db)
{
	return sqlite3_last_insert_rowid(db->handle);
}

const char *
db_column_text(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return text != NULL ? text : "";
}

int
db_column_word(sqlite3_stmt *s, int column, const char *const *words)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], db_column_text(s, column)) == 0)
			return i;
	log_err("column %s holds an unknown word",
	    sqlite3_column_name(s, column));
	abort();
}
