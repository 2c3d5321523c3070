/* SPDX-License-Identifier: MIT */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "write_lock.h"

#include "../base/err.h"

/* The files that call SQLite share this; nobody else includes it. */

/* A statement of sql/ on one connection. */
struct stmt {
	struct db *db;
	sqlite3_stmt *handle; /* NULL: not for this role, or not prepared yet
			       * (DB_ADMIN before db_migrate) */
};

struct db {
	sqlite3 *handle;
	enum db_role role;
	struct write_lock lock; /* held from before a change to its end */
	struct stmt statements[STATEMENT_COUNT];
	bool grouped;
	bool unflushed;	      /* what db_flush() is for */
	int64_t note;	      /* db_note() */
	struct err group_err; /* why the group is lost; ERR_NONE: it is not */
};

/* Every error of SQLite's comes by here.  Fill err from what it says about the
 * connection.  Always -1. */
int connection_error(struct db *db, struct err *err);
/* A group whose transaction did not begin, or that SQLite has rolled back, is
 * lost because of err. */
void connection_lose_group(struct db *db, const struct err *err);

/* Run one of sql/ that is not kept prepared, whether it works or not. */
void connection_try(struct db *db, enum statement which);

/* An sqlite3_set_authorizer() callback: holds the role's rights. */
int authorize(void *db, int action, const char *a, const char *b,
    const char *database, const char *trigger);

#endif
