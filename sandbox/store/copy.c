/* SPDX-License-Identifier: MIT */
/* A copy of SQLite's database as it is at one moment, while others write. */
#include "connection.h"

#include "../base/err.h"

/* All pages in one step: readers hold up no writer. */
int
copy_database(struct db *db, const char *path, struct err *err)
{
	sqlite3 *copy = NULL;
	sqlite3_backup *backup = NULL;
	int result = sqlite3_open_v2(path, &copy,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW |
		SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
	    NULL);

	if (result == SQLITE_OK)
		backup = sqlite3_backup_init(copy, "main",
		    connection_of(db)->handle, "main");
	if (backup != NULL) {
		(void)sqlite3_backup_step(backup, -1);
		result = sqlite3_backup_finish(backup);
	}
	if (backup == NULL || result != SQLITE_OK) {
		(void)err_set(err, ERR_SYSTEM, "copy the database: %s",
		    sqlite3_errmsg(copy));
		(void)sqlite3_close(copy);
		return -1;
	}
	return sqlite3_close(copy) == SQLITE_OK ?
	    0 :
	    err_set(err, ERR_SYSTEM, "close %s", path);
}
