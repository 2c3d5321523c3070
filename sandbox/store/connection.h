/* SPDX-License-Identifier: MIT */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <sqlite3.h>

#include "driver.h"
#include "write_lock.h"

/* What the files of SQLite share; nobody else includes it. */
struct connection {
	struct db db; /* first: see connection_of() */
	sqlite3 *handle;
	struct write_lock lock; /* held from before a change to its end */
};

static inline struct connection *
connection_of(const struct db *db)
{
	return (struct connection *)(uintptr_t)db;
}

static inline sqlite3_stmt *
connection_stmt(const struct stmt *s)
{
	return s->handle;
}

/* Fill err from what SQLite says about the connection.  Always -1. */
int connection_error(struct connection *c, struct err *err);
/* Run one of sql/ that is not prepared; whether it works or not. */
void connection_try(struct connection *c, enum statement which);

/* struct db_driver's, in statement.c, transaction.c and copy.c. */
void statement_reset(struct stmt *s);
void statement_bind_int(struct stmt *s, const char *name, int64_t value);
void statement_bind_text(struct stmt *s, const char *name, const char *text);
int statement_step(struct stmt *s, struct err *err);
int statement_changes(const struct stmt *s);
int64_t statement_last_id(const struct db *db);
int64_t statement_column_int(const struct stmt *s, int column);
const char *statement_column_text(const struct stmt *s, int column);
bool statement_column_is_null(const struct stmt *s, int column);
int transaction_begin(struct db *db, struct err *err);
int transaction_commit(struct db *db, struct err *err);
void transaction_rollback(struct db *db);
bool transaction_is_begun(const struct db *db);
void transaction_lasting(struct db *db, bool lasting);
int transaction_flush(struct db *db, struct err *err);
int copy_database(struct db *db, const char *path, struct err *err);

/* An sqlite3_set_authorizer() callback: holds the role's rights. */
int authorize(void *db, int action, const char *a, const char *b,
    const char *database, const char *trigger);

#endif
