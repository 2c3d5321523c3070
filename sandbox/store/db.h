/* SPDX-License-Identifier: MIT */
#ifndef DB_H
#define DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statements.h" /* generated from sql/: enum statement */

struct config;
struct err;

/*
 * The database: SQLite, in a file.  All SQL text comes from sql/; every
 * statement that a program may use is prepared when it opens the database, so
 * that a typo stops it at start.
 */
struct db;
struct stmt; /* a prepared statement */

/*
 * Roles, whose rights the database itself holds: DB_FRONT (il-fcgi) inserts
 * jobs and views and reads; DB_READER (counting, and an operator's lists)
 * reads; DB_WORKER changes all but the operator's rules; DB_NODE, which carries
 * people to other nodes, changes these, too; DB_ADMIN does all.
 */
enum db_role { DB_FRONT, DB_READER, DB_WORKER, DB_NODE, DB_ADMIN };

/* Open an existing, migrated database (DB_ADMIN: makes the file if missing, any
 * version).  Wrong version is ERR_CONFIG "run ilctl migrate". */
struct db *db_open(const char *path, enum db_role role, struct err *err);
/* The same for a service that starts: a database that is missing or older than
 * the program is migrated first, by one of those that start together. */
struct db *db_start(const char *path, enum db_role role, struct err *err);
/* Where there are several nodes: the database is of this one, IL_NODE, from now
 * on.  ERR_CONFIG: it is another node's.  A database that does not open says so
 * to whoever works with it, and not here. */
int db_claim(const struct config *config, struct err *err);
void db_close(struct db *db);

static inline void
db_close_at(struct db **db)
{
	db_close(*db);
}

#define auto_db __attribute__((cleanup(db_close_at)))

/* Bring the schema to the newest version, one transaction a migration.  Returns
 * the number that were applied, or -1. */
int db_migrate(struct db *db, struct err *err);

/* BEGIN IMMEDIATE … COMMIT.  A failed commit has rolled back. */
int db_begin(struct db *db, struct err *err);
int db_commit(struct db *db, struct err *err);
void db_rollback(struct db *db);
/* The end of a transaction: commit it if the result is 0, else roll it back.
 * Returns the result; -1: the commit failed. */
int db_end(struct db *db, int result, struct err *err);

/*
 * A group: changes of several that are committed, and flushed, together.  From
 * db_group_begin() on the first db_begin() begins for all, and db_commit() and
 * db_rollback() do nothing; so a member that fails must have changed nothing
 * (one statement each).  When db_group_commit() fails, all of it is undone;
 * when it has returned 0, others see it, and it survives the end of the
 * process, but a power cut only after db_flush().
 */
void db_group_begin(struct db *db);
int db_group_commit(struct db *db, struct err *err);
/* A number for the store to keep with a transaction: -1 when it begins. */
int64_t *db_note(struct db *db);

/* Whether commits from here on must survive a power cut (true, as after
 * db_open), which costs a disk flush each, or only the end of the process.  A
 * later lasting commit makes the earlier ones last, too.  Nothing inside a
 * transaction. */
void db_lasting(struct db *db, bool lasting);

/* Wait until the changes that this connection has not waited for survive a
 * power cut, too; where it fails nobody knows whether they would. */
int db_flush(struct db *db, struct err *err);

/* A prepared statement, reset and without bindings.  It is reset again when an
 * auto_stmt variable's scope ends; it is never finalised before db_close. */
struct stmt *db_statement(struct db *db, enum statement which);
void db_statement_done(struct stmt **stmt);
#define auto_stmt __attribute__((cleanup(db_statement_done)))

/* Bind by name (":id"); an unknown name is a bug and aborts.  The bytes are
 * copied; NULL binds "". */
void db_bind_int(struct stmt *s, const char *name, int64_t value);
void db_bind_text(struct stmt *s, const char *name, const char *text);

/* Values to bind: DB_VALUES(BIND(":id", id), BIND(":path", path)). */
struct db_value {
	const char *name; /* NULL ends a list */
	const char *text; /* NULL: the number is the value */
	int64_t number;
};

static inline struct db_value
db_value_int(const char *name, int64_t number)
{
	return (struct db_value){ name, NULL, number };
}

static inline struct db_value
db_value_text(const char *name, const char *text)
{
	return (struct db_value){ name, text != NULL ? text : "", 0 };
}

#define BIND(name, value) \
	_Generic((value), char *: db_value_text, const char *: db_value_text, \
	    default: db_value_int)(name, value)
#define DB_VALUES(...) \
	((const struct db_value[]){ __VA_ARGS__, { NULL, NULL, 0 } })
/* db_statement() with its values. */
struct stmt *db_bound(struct db *db, enum statement which,
    const struct db_value *values);

/* 1: a row; 0: done; -1: error (a UNIQUE conflict is ERR_CONFLICT, a full disk
 * ERR_LIMIT, a locked database ERR_BUSY). */
int db_step(struct db *db, struct stmt *s, struct err *err);
/* Step a statement that returns no row.  Returns how many rows it changed, or
 * -1. */
int db_run(struct db *db, struct stmt *s, struct err *err);
/* The same for what does no harm when a power cut undoes it: nobody waits for
 * the disk. */
int db_run_quick(struct db *db, struct stmt *s, struct err *err);

/* Change rows: how many, or -1. */
int db_change(struct db *db, enum statement which,
    const struct db_value *values, struct err *err);
/* The result of such a change, by the number of rows that it has changed. */
static inline int
db_one(int changes)
{
	return changes < 0 ? -1 : changes == 0;
}
/* Change rows where their number does not matter: 0 or -1. */
static inline int
db_change_any(struct db *db, enum statement which,
    const struct db_value *values, struct err *err)
{
	return db_change(db, which, values, err) < 0 ? -1 : 0;
}
/* Change one row.  1: there is no such row, or it is not in the state that is
 * needed. */
static inline int
db_change_one(struct db *db, enum statement which,
    const struct db_value *values, struct err *err)
{
	return db_one(db_change(db, which, values, err));
}
/* The same where a power cut may undo it. */
int db_change_quick(struct db *db, enum statement which,
    const struct db_value *values, struct err *err);
/* Step a statement to its first row.  1: there is none. */
static inline int
db_first(struct db *db, struct stmt *s, struct err *err)
{
	int row = db_step(db, s, err);

	return row < 0 ? -1 : row == 0;
}
/* Read one number, the first column of the first row; -1: an error. */
int64_t db_number(struct db *db, enum statement which,
    const struct db_value *values, struct err *err);

/* A column of the row by position, as in the statement; 0 and "" for NULL.
 * A text is valid until the next step. */
int64_t db_column_int(const struct stmt *s, int column);
const char *db_column_text(const struct stmt *s, int column);
bool db_column_is_null(const struct stmt *s, int column);
bool db_column_is_text(const struct stmt *s, int column);
/* Its name; NULL behind the last one. */
const char *db_column_name(const struct stmt *s, int column);
/* Its index in a list, ended by NULL, of those that a CHECK of the schema
 * allows: anything else means that the two differ, and aborts. */
int db_column_word(const struct stmt *s, int column, const char *const *words);

/* Write a copy of it, as it is now, into a new file, while others write. */
int db_copy(struct db *db, const char *path, struct err *err);

/* Write the WAL back into the file; when idle, and in il-worker only. */
void db_checkpoint(struct db *db);

#endif
