/* SPDX-License-Identifier: MIT */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <sqlite3.h>

#include "db.h"
#include "write_lock.h"

#include "../base/err.h"

/* What the files behind db.h share; nobody else includes it. */
struct db {
	sqlite3 *handle;
	enum db_role role;
	/* NULL: not for this role, or not prepared yet (DB_ADMIN before
	 * db_migrate) */
	sqlite3_stmt *statements[STATEMENT_COUNT];
	struct write_lock lock; /* held from before a change to its end */
	bool grouped;
	bool unflushed;	      /* what db_flush() is for */
	int64_t note;	      /* db_note() */
	struct err group_err; /* why the group is lost; ERR_NONE: it is not */
};

/* Fill err from what SQLite says about the connection.  Always -1. */
int connection_error(struct db *db, struct err *err);
/* A group whose transaction did not begin, or that SQLite has rolled back, is
 * lost.  Every error comes by here. */
void connection_group_error(struct db *db, const struct err *err);
/* Run one of sql/ that is not prepared; whether it works or not. */
void connection_try(struct db *db, enum statement which);

/* An sqlite3_set_authorizer() callback: holds the role's rights. */
int authorize(void *db, int action, const char *a, const char *b,
    const char *database, const char *trigger);

#endif
