/* SPDX-License-Identifier: MIT */
/*
 * The rights of each role, held by SQLite itself: it asks here about every
 * table, column and function while it prepares a statement.  A backstop: even
 * SQL that an attacker could choose would read no token and change no state.
 */
#include "store/authorize.h"

#include <sqlite3.h>
#include <string.h>

static const char *const front_tables[] = { "jobs", "views", NULL };

static bool
listed(const char *const *list, const char *name)
{
	while (*list != NULL && strcmp(*list, name) != 0)
		list++;
	return *list != NULL;
}

static bool
may_call(enum db_role role, const char *name)
{
	static const char *const functions[] = { "count", "coalesce", "max",
		"min", "length", "glob", "sum", "row_number", "instr", "lower",
		"replace", "substr", NULL };
	/* A person's rows are carried as JSON. */
	static const char *const of_node[] = { "json", "json_object",
		"json_group_array", "json_valid", "->>", "iif", NULL };

	return listed(functions, name) ||
	    (role == DB_NODE && listed(of_node, name));
}

static bool
may_change(enum db_role role, int action, const char *table,
    const char *trigger)
{
	/* The trigger bounds how many views a person has. */
	if (role == DB_FRONT && trigger != NULL)
		return strcmp(trigger, "views_bounded") == 0;
	if (role == DB_FRONT)
		return action == SQLITE_INSERT && listed(front_tables, table);
	/* The operator alone changes rules; they go with a person to another
	 * node. */
	return strncmp(table, "sqlite_", 7) != 0 &&
	    (role == DB_NODE ||
		(role == DB_WORKER && strcmp(table, "rules") != 0));
}

/* May a role do this?  a and b are SQLite's details of each action. */
static bool
may(enum db_role role, int action, const char *a, const char *b,
    const char *trigger)
{
	/* Columns of both that hold what people said, for workers only. */
	static const char *const private_columns[] = { "token", "text", "input",
		"body", "attachment_url", "output", "files", "package", NULL };

	if (role == DB_ADMIN)
		return true;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_TRANSACTION:
		return true;
	case SQLITE_READ:
		return role == DB_WORKER || role == DB_NODE ||
		    !listed(front_tables, a) || !listed(private_columns, b);
	case SQLITE_INSERT:
	case SQLITE_UPDATE:
	case SQLITE_DELETE:
		return may_change(role, action, a, trigger);
	case SQLITE_FUNCTION:
		return may_call(role, b);
	case SQLITE_PRAGMA: /* the version is read, not set */
		return (strcmp(a, "user_version") == 0 && b == NULL) ||
		    (role != DB_READER && strcmp(a, "synchronous") == 0);
	default:
		return false;
	}
}

int
authorize(void *role, int action, const char *a, const char *b,
    const char *database, const char *trigger)
{
	(void)database;
	return may(*(const enum db_role *)role, action, a, b, trigger) ?
	    SQLITE_OK :
	    SQLITE_DENY;
}

/* Statements that set a connection up are run, not prepared; an operator's
 * lists would be kilobytes of each worker and each front, as would what carries
 * people. */
bool
authorize_has(enum db_role role, const char *statement)
{
	if (strncmp(statement, "person_", 7) == 0)
		return role == DB_NODE || role == DB_ADMIN;
	if (strncmp(statement, "list_", 5) == 0)
		return role == DB_READER || role == DB_NODE || role == DB_ADMIN;
	return strncmp(statement, "connect_", 8) != 0;
}
