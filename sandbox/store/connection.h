/* SPDX-License-Identifier: MIT */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "statements.h"

#include "base/basics.h"

/* Parts that db.c and db_open.c share; no other program file includes them. */

/* A statement of sql/ on one connection. */
struct stmt {
	struct db *db;
	sqlite3_stmt *handle; /* NULL: not for this role, or not prepared yet
			       * (DB_ADMIN before db_migrate) */
};

struct db {
	sqlite3 *handle;
	int role; /* enum db_role */
	/*
	 * Turn of the next writer.  SQLite has one writer; a process that finds
	 * it busy sleeps, longer each time, and another one that comes at the
	 * right moment goes first.  So all writers take a lock before, of a
	 * file beside the database.  Nothing depends on it but the order: an
	 * operator's shell does without.  -1: there is no such file, and no
	 * turn.
	 */
	int turn;
	bool has_turn; /* from before a change to its end */
	struct stmt statements[STATEMENT_COUNT];
	bool grouped;
	bool unflushed;	      /* db_flush() has work */
	int64_t note;	      /* db_note() */
	struct err group_err; /* why the group is lost; ERR_NONE: it is not */
};

/* False: the turn did not come in this time. */
bool db_turn_take(struct db *db, int timeout_ms);
void db_turn_give(struct db *db);
/* Every error of SQLite's comes by here.  Fill err from what it says about the
 * connection.  Always -1. */
int db_failed(struct db *db, struct err *err);

#endif
