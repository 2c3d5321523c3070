/* SPDX-License-Identifier: MIT */
/* A copy of the database as it is at one moment, while others write to it. */
#include "connection.h"

#include "../base/err.h"

/* All pages in one step: readers hold up no writer. */
int
db_copy(struct db *db, const char *path, struct err *err)
{
	struct db copy = { .role = DB_ADMIN };
	sqlite3_backup *backup = NULL;
	int result = sqlite3_open_v2(path, &copy.handle,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW |
		SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
	    NULL);

	if (result == SQLITE_OK)
		backup = sqlite3_backup_init(copy.handle, "main", db->handle,
		    "main");
	if (backup != NULL) {
		(void)sqlite3_backup_step(backup, -1);
		result = sqlite3_backup_finish(backup);
	}
	if (backup == NULL || result != SQLITE_OK) {
		(void)err_set(err, ERR_SYSTEM, "copy the database: %s",
		    sqlite3_errmsg(copy.handle));
		(void)sqlite3_close(copy.handle);
		return -1;
	}
	return sqlite3_close(copy.handle) == SQLITE_OK ?
	    0 :
	    err_set(err, ERR_SYSTEM, "close %s", path);
}
