/* SPDX-License-Identifier: MIT */
/* Transactions and groups, and which commits are flushed; statements, and rows
 * that are structs. */
#include "store/db.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/basics.h"
#include "base/fd.h"
#include "store/connection.h"
#include "store/row.h"

/* Time for a change to get its turn. */
#define FRONT_TURN_MS 1000
#define TURN_MS 10000

/* ---- turns ---- */

bool
db_turn_take(struct db *db, int timeout_ms)
{
	if (db->turn >= 0 && !db->has_turn)
		db->has_turn = fd_lock_within(db->turn, timeout_ms);
	return db->turn < 0 || db->has_turn;
}

void
db_turn_give(struct db *db)
{
	if (db->has_turn)
		(void)flock(db->turn, LOCK_UN);
	db->has_turn = false;
}

/* ---- errors ---- */

static enum err_code
error_code(int extended)
{
	if (extended == SQLITE_CONSTRAINT_UNIQUE ||
	    extended == SQLITE_CONSTRAINT_PRIMARYKEY)
		return ERR_CONFLICT;
	switch (extended & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_BUSY;
	case SQLITE_FULL:
		return ERR_LIMIT;
	case SQLITE_ERROR: /* a function takes no such value */
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
		return ERR_INPUT;
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_NOTADB:
		return ERR_CONFIG;
	default:
		return ERR_SYSTEM;
	}
}

/* A group whose transaction did not begin, or that SQLite has rolled back, is
 * lost because of err. */
static void
lose_group(struct db *db, const struct err *err)
{
	if (db->grouped && db->group_err.code == ERR_NONE &&
	    sqlite3_get_autocommit(db->handle) != 0)
		db->group_err = *err;
}

int
db_failed(struct db *db, struct err *err)
{
	int extended = sqlite3_extended_errcode(db->handle);

	if ((extended & 0xff) == SQLITE_NOMEM)
		log_fatal(1, "out of memory in the database");
	/* A full disk also comes as a failed write. */
	if ((extended & 0xff) == SQLITE_IOERR &&
	    sqlite3_system_errno(db->handle) == ENOSPC)
		(void)err_set(err, ERR_LIMIT, "database: no space left");
	else
		(void)err_set(err, error_code(extended), "database: %s",
		    sqlite3_errmsg(db->handle));
	lose_group(db, err);
	return -1;
}

/* ---- transactions ---- */

/* Run one of sql/ that is not kept prepared, whether it works or not. */
static void
try(struct db *db, enum statement which)
{
	(void)sqlite3_exec(db->handle, statement_texts[which].sql, NULL, NULL,
	    NULL);
}

static bool
is_begun(const struct db *db)
{
	return sqlite3_get_autocommit(db->handle) == 0;
}

static int
db_run_statement(struct db *db, enum statement which, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);

	return db_run(db, s, err) < 0 ? -1 : 0;
}

static void
roll_back(struct db *db)
{
	/* SQLite rolls back by itself after some errors. */
	if (is_begun(db))
		try(db, STATEMENT_ROLLBACK);
	if (!is_begun(db))
		db_turn_give(db);
}

static int
commit(struct db *db, struct err *err)
{
	if (db_run_statement(db, STATEMENT_COMMIT, err) == 0)
		return 0;
	roll_back(db);
	return -1;
}

int
db_begin(struct db *db, struct err *err)
{
	/* Nothing of a lost group can be committed any more. */
	if (db->grouped && db->group_err.code != ERR_NONE) {
		*err = db->group_err;
		return -1;
	}
	if (db->grouped && is_begun(db))
		return 0;
	db->note = -1;
	return db_run_statement(db, STATEMENT_BEGIN_IMMEDIATE, err);
}

int
db_commit(struct db *db, struct err *err)
{
	return db->grouped ? 0 : commit(db, err);
}

void
db_rollback(struct db *db)
{
	if (!db->grouped)
		roll_back(db);
}

int
db_end(struct db *db, int result, struct err *err)
{
	if (result == 0 && db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return result != 0 ? result : -1;
}

void
db_group_begin(struct db *db)
{
	db_lasting(db, false);
	db->grouped = true;
	db->group_err = (struct err){ 0 };
}

static int
end_group(struct db *db, struct err *err)
{
	db->grouped = false;
	if (db->group_err.code != ERR_NONE) {
		roll_back(db);
		*err = db->group_err;
		return -1;
	}
	if (!is_begun(db))
		return 0;
	db->unflushed = true;
	return commit(db, err);
}

int
db_group_commit(struct db *db, struct err *err)
{
	int result = end_group(db, err);

	db_lasting(db, true);
	return result;
}

int64_t *
db_note(struct db *db)
{
	return &db->note;
}

void
db_lasting(struct db *db, bool lasting)
{
	/* It takes effect when it is prepared, so it cannot be kept prepared.
	 * At worst it fails to spare a flush. */
	try(db, lasting ? STATEMENT_CONNECT_LASTING : STATEMENT_CONNECT_QUICK);
}

/* As SQLite does it itself in a commit that lasts. */
int
db_flush(struct db *db, struct err *err)
{
	sqlite3_file *wal = NULL;

	if (!db->unflushed)
		return 0;
	if (sqlite3_file_control(db->handle, "main",
		SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK ||
	    wal == NULL || wal->pMethods == NULL ||
	    wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL) != SQLITE_OK)
		return err_set(err, ERR_SYSTEM,
		    "database: what was changed may not last");
	db->unflushed = false;
	return 0;
}

/* ---- statements ---- */

/* Name of a statement, for messages. */
static const char *
statement_name(const struct stmt *s)
{
	return statement_texts[s - s->db->statements].name;
}

static void
reset(struct stmt *s)
{
	(void)sqlite3_reset(s->handle);
	(void)sqlite3_clear_bindings(s->handle);
}

struct stmt *
db_statement(struct db *db, enum statement which)
{
	struct stmt *s = &db->statements[which];

	if (s->handle == NULL) {
		log_err("statement %s is not for this program",
		    statement_texts[which].name);
		abort();
	}
	reset(s);
	return s;
}

void
db_statement_done(struct stmt **stmt)
{
	reset(*stmt);
}

/* A name that is not in the statement has index 0, which SQLite refuses. */
static void
bound(const struct stmt *s, const char *name, int result)
{
	if (result == SQLITE_OK)
		return;
	log_err("binding %s to %s: %s", name, statement_name(s),
	    sqlite3_errstr(result));
	abort();
}

void
db_bind_int(struct stmt *s, const char *name, int64_t value)
{
	bound(s, name,
	    sqlite3_bind_int64(s->handle,
		sqlite3_bind_parameter_index(s->handle, name), value));
}

void
db_bind_text(struct stmt *s, const char *name, const char *text)
{
	bound(s, name,
	    sqlite3_bind_text(s->handle,
		sqlite3_bind_parameter_index(s->handle, name),
		text != NULL ? text : "", -1, SQLITE_TRANSIENT));
}

struct stmt *
db_bound(struct db *db, enum statement which, const struct db_value *values)
{
	struct stmt *s = db_statement(db, which);

	for (; values->name != NULL; values++)
		if (values->text != NULL)
			db_bind_text(s, values->name, values->text);
		else
			db_bind_int(s, values->name, values->number);
	return s;
}

/* A statement that changes something begins a transaction if there is none. */
static int
db_wait_turn(struct db *db, sqlite3_stmt *h, struct err *err)
{
	if (sqlite3_stmt_readonly(h) != 0 || is_begun(db) ||
	    db_turn_take(db, db->role == DB_FRONT ? FRONT_TURN_MS : TURN_MS))
		return 0;
	(void)err_set(err, ERR_BUSY, "database: others write all the time");
	lose_group(db, err);
	return -1;
}

int
db_step(struct db *db, struct stmt *s, struct err *err)
{
	int result;

	if (db_wait_turn(db, s->handle, err) != 0)
		return -1;
	result = sqlite3_step(s->handle);
	if (result == SQLITE_ROW)
		return 1;
	if (result != SQLITE_DONE) {
		(void)db_failed(db, err);
		(void)err_wrap(err, "%s", statement_name(s));
		/* An automatic transaction ends with its statement. */
		(void)sqlite3_reset(s->handle);
	}
	/* A transaction is over, by a commit or without. */
	if (!is_begun(db))
		db_turn_give(db);
	return result == SQLITE_DONE ? 0 : -1;
}

int
db_run(struct db *db, struct stmt *s, struct err *err)
{
	int result = db_step(db, s, err);

	if (result == 1) {
		log_err("a row that nobody asked for: %s", statement_name(s));
		abort();
	}
	return result < 0 ? -1 : sqlite3_changes(db->handle);
}

int
db_run_quick(struct db *db, struct stmt *s, struct err *err)
{
	int changes;

	db_lasting(db, false);
	changes = db_run(db, s, err);
	db_lasting(db, true);
	db->unflushed |= changes > 0;
	return changes;
}

int
db_change(struct db *db, enum statement which, const struct db_value *values,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, which, values);

	return db_run(db, s, err);
}

int
db_change_quick(struct db *db, enum statement which,
    const struct db_value *values, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, which, values);

	return db_one(db_run_quick(db, s, err));
}

int64_t
db_number(struct db *db, enum statement which, const struct db_value *values,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, which, values);

	return db_step(db, s, err) == 1 ? db_column_int(s, 0) : -1;
}

int64_t
db_column_int(const struct stmt *s, int column)
{
	return sqlite3_column_int64(s->handle, column);
}

bool
db_column_is_null(const struct stmt *s, int column)
{
	return sqlite3_column_type(s->handle, column) == SQLITE_NULL;
}

bool
db_column_is_text(const struct stmt *s, int column)
{
	return sqlite3_column_type(s->handle, column) == SQLITE_TEXT;
}

const char *
db_column_name(const struct stmt *s, int column)
{
	return sqlite3_column_name(s->handle, column);
}

const char *
db_column_text(const struct stmt *s, int column)
{
	const unsigned char *text = sqlite3_column_text(s->handle, column);

	return text != NULL ? (const char *)text : "";
}

int
db_column_word(const struct stmt *s, int column, const char *const *words)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], db_column_text(s, column)) == 0)
			return i;
	log_err("column %d of %s holds an unknown word", column,
	    statement_name(s));
	abort();
}

/* ---- rows that are structs ---- */

void
row_bind(struct stmt *s, const struct row_field *fields, const void *row)
{
	for (; fields->name != NULL; fields++) {
		const char *at = (const char *)row + fields->at;

		if (sqlite3_bind_parameter_index(s->handle, fields->name) == 0)
			continue;
		switch (fields->type) {
		case ROW_INT:
			db_bind_int(s, fields->name, *(const int64_t *)at);
			break;
		case ROW_BOOL:
			db_bind_int(s, fields->name, *(const bool *)at);
			break;
		case ROW_TEXT:
			db_bind_text(s, fields->name, *(char *const *)at);
			break;
		case ROW_CHARS:
			db_bind_text(s, fields->name, at);
			break;
		}
	}
}

/* The search begins with the column where it is, if all are in their order. */
static int
row_find(const struct stmt *s, const char *name, int first)
{
	int count = sqlite3_column_count(s->handle);

	for (int i = 0; i < count; i++) {
		int column = (first + i) % count;

		if (strcmp(sqlite3_column_name(s->handle, column), name) == 0)
			return column;
	}
	return -1;
}

int
row_column(const struct stmt *s, const char *name)
{
	return row_find(s, name, 0);
}

void
row_read(const struct stmt *s, const struct row_field *fields, void *row)
{
	int next = 0;

	for (; fields->name != NULL; fields++) {
		int column = row_find(s, fields->name + 1, next);
		char *at = (char *)row + fields->at;

		if (column < 0)
			continue;
		next = column + 1;
		switch (fields->type) {
		case ROW_INT:
			*(int64_t *)at = db_column_int(s, column);
			break;
		case ROW_BOOL:
			*(bool *)at = db_column_int(s, column) != 0;
			break;
		case ROW_TEXT:
			*(char **)at = xstrdup(db_column_text(s, column));
			break;
		case ROW_CHARS:
			(void)snprintf(at, fields->size, "%s",
			    db_column_text(s, column));
			break;
		}
	}
}

void
row_release(const struct row_field *fields, void *row)
{
	for (; fields->name != NULL; fields++)
		if (fields->type == ROW_TEXT)
			free(*(char **)((char *)row + fields->at));
}
