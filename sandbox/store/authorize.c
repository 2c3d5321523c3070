/*
 * The rights of each role, held by SQLite itself: it asks here about every
 * table, column and function while it prepares a statement.  A backstop: even
 * SQL that an attacker could choose would read no token and change no state.
 */
#include "connection.h"

#include <string.h>

static bool
listed(const char *const *list, const char *name)
{
	for (; *list != NULL; list++) {
		if (strcmp(*list, name) == 0)
			return true;
	}
	return false;
}

/* Columns of jobs that hold what people said: only workers read them. */
static bool
is_private(const char *table, const char *column)
{
	static const char *const columns[] = { "token", "text", "input", "body",
		"attachment_url", NULL };

	return strcmp(table, "jobs") == 0 && listed(columns, column);
}

static bool
is_plain_function(const char *name)
{
	static const char *const functions[] = { "count", "coalesce", "max",
		"min", "length", "glob", NULL };

	return listed(functions, name);
}

static bool
reader_may(int action, const char *a, const char *b)
{
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_TRANSACTION:
		return true;
	case SQLITE_READ:
		return !is_private(a, b);
	case SQLITE_FUNCTION:
		return is_plain_function(b);
	case SQLITE_PRAGMA: /* to read it, not to set it */
		return strcmp(a, "user_version") == 0 && b == NULL;
	default:
		return false;
	}
}

static bool
front_may(int action, const char *a, const char *b)
{
	if (action == SQLITE_INSERT)
		return strcmp(a, "jobs") == 0 || strcmp(a, "views") == 0;
	return reader_may(action, a, b);
}

static bool
worker_may(int action, const char *a, const char *b)
{
	if (action == SQLITE_READ)
		return true;
	if (action == SQLITE_INSERT || action == SQLITE_UPDATE ||
	    action == SQLITE_DELETE)
		return strncmp(a, "sqlite_", 7) != 0;
	if (action == SQLITE_PRAGMA && strcmp(a, "synchronous") == 0)
		return true;
	return reader_may(action, a, b);
}

int
authorize(void *db, int action, const char *a, const char *b,
    const char *database, const char *trigger)
{
	bool may = false;

	(void)database;
	(void)trigger;
	switch (((const struct db *)db)->role) {
	case DB_FRONT:
		may = front_may(action, a, b);
		break;
	case DB_READER:
		may = reader_may(action, a, b);
		break;
	case DB_WORKER:
		may = worker_may(action, a, b);
		break;
	case DB_ADMIN:
		may = true;
		break;
	}
	return may ? SQLITE_OK : SQLITE_DENY;
}
