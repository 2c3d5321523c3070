/* SPDX-License-Identifier: MIT */
/* A copy of SQLite's database as it is at one moment, while others write. */
#include "connection.h"

#include <fcntl.h>
#include <unistd.h>

#include "../base/err.h"

/* SQLite would make it, and what it writes beside it, readable for all.  Closed
 * before SQLite opens it, or SQLite's locks would go with it. */
static int
make_empty(const char *path, struct err *err)
{
	int fd = open(path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || close(fd) != 0 ? err_system(err, "%s", path) : 0;
}

/* All pages in one step: readers hold up no writer. */
int
copy_database(struct db *db, const char *path, struct err *err)
{
	sqlite3 *copy = NULL;
	sqlite3_backup *backup = NULL;
	int result;

	if (make_empty(path, err) != 0)
		return -1;
	result = sqlite3_open_v2(path, &copy,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX |
		SQLITE_OPEN_EXRESCODE,
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
