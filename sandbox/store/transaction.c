/* SPDX-License-Identifier: MIT */
/* SQLite's transactions; which commits are flushed, and when. */
#include "connection.h"

#include "../base/err.h"

bool
transaction_is_begun(const struct db *db)
{
	return sqlite3_get_autocommit(connection_of(db)->handle) == 0;
}

static int
run(struct db *db, enum statement which, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);

	return db_run(db, s, err) < 0 ? -1 : 0;
}

int
transaction_begin(struct db *db, struct err *err)
{
	return run(db, STATEMENT_BEGIN_IMMEDIATE, err);
}

int
transaction_commit(struct db *db, struct err *err)
{
	int result = run(db, STATEMENT_COMMIT, err);

	if (result != 0)
		transaction_rollback(db);
	return result;
}

void
transaction_rollback(struct db *db)
{
	struct connection *c = connection_of(db);

	/* SQLite rolls back by itself after some errors. */
	if (transaction_is_begun(db))
		connection_try(c, STATEMENT_ROLLBACK);
	if (!transaction_is_begun(db))
		write_lock_give(&c->lock);
}

void
transaction_lasting(struct db *db, bool lasting)
{
	/* It takes effect when it is prepared, so it cannot be kept prepared.
	 * At worst it fails to spare a flush. */
	connection_try(connection_of(db),
	    lasting ? STATEMENT_CONNECT_LASTING : STATEMENT_CONNECT_QUICK);
}

/* As SQLite does it itself in a commit that lasts. */
int
transaction_flush(struct db *db, struct err *err)
{
	sqlite3_file *wal = NULL;

	if (sqlite3_file_control(connection_of(db)->handle, "main",
		SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK ||
	    wal == NULL || wal->pMethods == NULL ||
	    wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL) != SQLITE_OK)
		return err_set(err, ERR_SYSTEM,
		    "database: what was changed may not last");
	return 0;
}
