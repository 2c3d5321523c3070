/* SPDX-License-Identifier: MIT */
/* Transactions; groups that are committed together; which commits are
 * flushed, and when. */
#include "connection.h"

#include "../base/err.h"

static bool
is_begun(const struct db *db)
{
	return sqlite3_get_autocommit(db->handle) == 0;
}

static int
run(struct db *db, enum statement which, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, which);

	return db_run(db, s, err) < 0 ? -1 : 0;
}

static void
rollback(struct db *db)
{
	/* SQLite rolls back by itself after some errors. */
	if (is_begun(db))
		connection_try(db, STATEMENT_ROLLBACK);
	if (!is_begun(db))
		write_lock_give(&db->lock);
}

static int
commit(struct db *db, struct err *err)
{
	int result = run(db, STATEMENT_COMMIT, err);

	if (result != 0)
		rollback(db);
	return result;
}

int
db_begin(struct db *db, struct err *err)
{
	/* Nothing of a lost group can be committed any more. */
	if (db->grouped && db->group_err.code != ERR_NONE) {
		*err = db->group_err;
		return -1;
	}
	if (db->grouped && is_begun(db))
		return 0;
	db->note = -1;
	return run(db, STATEMENT_BEGIN_IMMEDIATE, err);
}

int
db_commit(struct db *db, struct err *err)
{
	return db->grouped ? 0 : commit(db, err);
}

void
db_rollback(struct db *db)
{
	if (!db->grouped)
		rollback(db);
}

void
db_group_begin(struct db *db)
{
	db_lasting(db, false);
	db->grouped = true;
	db->group_err = (struct err){ 0 };
}

static int
end_group(struct db *db, struct err *err)
{
	db->grouped = false;
	if (db->group_err.code != ERR_NONE) {
		rollback(db);
		*err = db->group_err;
		return -1;
	}
	if (!is_begun(db))
		return 0;
	db->unflushed = true;
	return commit(db, err);
}

int
db_group_commit(struct db *db, struct err *err)
{
	int result = end_group(db, err);

	db_lasting(db, true);
	return result;
}

int64_t *
db_note(struct db *db)
{
	return &db->note;
}

void
connection_group_error(struct db *db, const struct err *err)
{
	if (db->grouped && !is_begun(db) && db->group_err.code == ERR_NONE)
		db->group_err = *err;
}

void
db_lasting(struct db *db, bool lasting)
{
	/* It takes effect when it is prepared, so it cannot be kept prepared.
	 * At worst it fails to spare a flush. */
	connection_try(db,
	    lasting ? STATEMENT_CONNECT_LASTING : STATEMENT_CONNECT_QUICK);
}

/* As SQLite does it itself in a commit that lasts. */
int
db_flush(struct db *db, struct err *err)
{
	sqlite3_file *wal = NULL;

	if (!db->unflushed)
		return 0;
	if (sqlite3_file_control(db->handle, "main",
		SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK ||
	    wal == NULL || wal->pMethods == NULL ||
	    wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL) != SQLITE_OK)
		return err_set(err, ERR_SYSTEM,
		    "database: what was changed may not last");
	db->unflushed = false;
	return 0;
}
