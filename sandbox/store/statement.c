/* SPDX-License-Identifier: MIT */
/* Transactions and groups, which commits are flushed and when; statements:
 * bound by name, stepped in their turn, read by column. */
#include "connection.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"

/* How long a change waits for its turn; the front has three seconds for its
 * whole answer. */
#define FRONT_TURN_MS 1000
#define TURN_MS 10000

/* ---- transactions ---- */

static bool
is_begun(const struct db *db)
{
	return sqlite3_get_autocommit(db->handle) == 0;
}

static int
run(struct db *db, enum statement which, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);

	return db_run(db, s, err) < 0 ? -1 : 0;
}

static void
roll_back(struct db *db)
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
		roll_back(db);
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
		roll_back(db);
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
		roll_back(db);
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

/* ---- statements ---- */

/* Which statement it is, for a text about it. */
static const char *
name_of(const struct stmt *s)
{
	return statement_texts[s - s->db->statements].name;
}

static void
reset(struct stmt *s)
{
	(void)sqlite3_reset(s->handle);
	(void)sqlite3_clear_bindings(s->handle);
}

struct stmt *
db_statement(struct db *db, enum statement which)
{
	struct stmt *s = &db->statements[which];

	if (s->handle == NULL) {
		log_err("statement %s is not for this program",
		    statement_texts[which].name);
		abort();
	}
	reset(s);
	return s;
}

void
db_statement_done(struct stmt **stmt)
{
	reset(*stmt);
}

/* A name that is not in the statement has index 0, which SQLite refuses. */
static void
bound(const struct stmt *s, const char *name, int result)
{
	if (result == SQLITE_OK)
		return;
	log_err("binding %s to %s: %s", name, name_of(s),
	    sqlite3_errstr(result));
	abort();
}

void
db_bind_int(struct stmt *s, const char *name, int64_t value)
{
	bound(s, name,
	    sqlite3_bind_int64(s->handle,
		sqlite3_bind_parameter_index(s->handle, name), value));
}

void
db_bind_text(struct stmt *s, const char *name, const char *text)
{
	bound(s, name,
	    sqlite3_bind_text(s->handle,
		sqlite3_bind_parameter_index(s->handle, name),
		text != NULL ? text : "", -1, SQLITE_TRANSIENT));
}

/* What changes something, and is not inside a transaction, begins one. */
static int
take_lock(struct db *db, sqlite3_stmt *h, struct err *err)
{
	if (sqlite3_stmt_readonly(h) != 0 || is_begun(db) ||
	    write_lock_take(&db->lock,
		db->role == DB_FRONT ? FRONT_TURN_MS : TURN_MS))
		return 0;
	(void)err_set(err, ERR_BUSY, "database: others write all the time");
	connection_lose_group(db, err);
	return -1;
}

int
db_step(struct db *db, struct stmt *s, struct err *err)
{
	int result;

	if (take_lock(db, s->handle, err) != 0)
		return -1;
	result = sqlite3_step(s->handle);
	if (result == SQLITE_ROW)
		return 1;
	if (result != SQLITE_DONE) {
		(void)connection_error(db, err);
		/* An automatic transaction ends with its statement. */
		(void)sqlite3_reset(s->handle);
	}
	/* A transaction is over, by a commit or without. */
	if (!is_begun(db))
		write_lock_give(&db->lock);
	return result == SQLITE_DONE ? 0 : -1;
}

int
db_run(struct db *db, struct stmt *s, struct err *err)
{
	int result = db_step(db, s, err);

	if (result == 1) {
		log_err("a row that nobody asked for: %s", name_of(s));
		abort();
	}
	return result < 0 ? -1 : sqlite3_changes(db->handle);
}

int
db_run_quick(struct db *db, struct stmt *s, struct err *err)
{
	int changes;

	db_lasting(db, false);
	changes = db_run(db, s, err);
	db_lasting(db, true);
	db->unflushed |= changes > 0;
	return changes;
}

int
db_prune(struct db *db, enum statement which, int64_t older_than_ms, int most,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);
	int changes;

	db_bind_int(s, ":before_ms", clock_wall_ms() - older_than_ms);
	db_bind_int(s, ":most", most);
	changes = db_run(db, s, err);
	return changes < 0 ? err_wrap(err, "prune") : changes;
}

int64_t
db_column_int(const struct stmt *s, int column)
{
	return sqlite3_column_int64(s->handle, column);
}

bool
db_column_is_null(const struct stmt *s, int column)
{
	return sqlite3_column_type(s->handle, column) == SQLITE_NULL;
}

bool
db_column_is_text(const struct stmt *s, int column)
{
	return sqlite3_column_type(s->handle, column) == SQLITE_TEXT;
}

const char *
db_column_name(const struct stmt *s, int column)
{
	return sqlite3_column_name(s->handle, column);
}

const char *
db_column_text(const struct stmt *s, int column)
{
	const unsigned char *text = sqlite3_column_text(s->handle, column);

	return text != NULL ? (const char *)text : "";
}

int
db_column_word(const struct stmt *s, int column, const char *const *words)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], db_column_text(s, column)) == 0)
			return i;
	log_err("column %d of %s holds an unknown word", column, name_of(s));
	abort();
}
