/* SPDX-License-Identifier: MIT */
/* A connection from its opening to its end; transactions and groups, and which
 * commits are flushed; statements; the schema, and a copy of all. */
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "migrations.h"
#include "store/connection.h"

#define MODE 0660 /* fronts and workers are one group */
/* Time for a change to get its turn. */
#define FRONT_TURN_MS 1000
#define TURN_MS 10000
/* A program that brings the schema up to date waits for one that does so. */
#define ADMIN_BUSY_MS 60000
/* Free memory that stays at the heap's end. */
#define KEEP_BYTES (1 << 20)
/* Bytes of one value or statement; all rows of a person are one (moves.h). */
#define VALUE_MAX (8 << 20)
#define PERSON_MAX (32 << 20)

/* Statement that each role begins with, its wait for others, and its longest
 * value.  The front has three seconds for the whole answer. */
static const struct {
	enum statement recipe;
	int busy_ms;
	int value_max;
} roles[] = {
	[DB_FRONT] = { STATEMENT_CONNECT_FRONT, 1500, VALUE_MAX },
	[DB_READER] = { STATEMENT_CONNECT_READER, 10000, VALUE_MAX },
	[DB_WORKER] = { STATEMENT_CONNECT_WORKER, 10000, VALUE_MAX },
	[DB_NODE] = { STATEMENT_CONNECT_WORKER, 10000, PERSON_MAX },
	[DB_ADMIN] = { STATEMENT_CONNECT_ADMIN, ADMIN_BUSY_MS, PERSON_MAX },
};

/* ---- turns ---- */

/* Open "<database>-turn"; on failure turns are not taken. */
static void
turn_open(struct db *db, const char *path)
{
	auto_free char *name = xprintf("%s-turn", path);

	db->turn = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (db->turn >= 0)
		(void)fchmod(db->turn, MODE); /* in spite of the umask */
}

/* False: it did not come in this time. */
static bool
turn_take(struct db *db, int timeout_ms)
{
	if (db->turn >= 0 && !db->has_turn)
		db->has_turn = fd_lock_within(db->turn, timeout_ms);
	return db->turn < 0 || db->has_turn;
}

static void
turn_give(struct db *db)
{
	if (db->has_turn)
		(void)flock(db->turn, LOCK_UN);
	db->has_turn = false;
}

/* ---- errors ---- */

static enum err_code
error_code(int extended)
{
	if (extended == SQLITE_CONSTRAINT_UNIQUE ||
	    extended == SQLITE_CONSTRAINT_PRIMARYKEY)
		return ERR_CONFLICT;
	switch (extended & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_BUSY;
	case SQLITE_FULL:
		return ERR_LIMIT;
	case SQLITE_ERROR: /* a function takes no such value */
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
		return ERR_INPUT;
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_NOTADB:
		return ERR_CONFIG;
	default:
		return ERR_SYSTEM;
	}
}

/* A group whose transaction did not begin, or that SQLite has rolled back, is
 * lost because of err. */
static void
lose_group(struct db *db, const struct err *err)
{
	if (db->grouped && db->group_err.code == ERR_NONE &&
	    sqlite3_get_autocommit(db->handle) != 0)
		db->group_err = *err;
}

/* Every error of SQLite's comes by here.  Fill err from what it says about the
 * connection.  Always -1. */
static int
failed(struct db *db, struct err *err)
{
	int extended = sqlite3_extended_errcode(db->handle);

	if ((extended & 0xff) == SQLITE_NOMEM)
		log_fatal(1, "out of memory in the database");
	/* A full disk also comes as a failed write. */
	if ((extended & 0xff) == SQLITE_IOERR &&
	    sqlite3_system_errno(db->handle) == ENOSPC)
		(void)err_set(err, ERR_LIMIT, "database: no space left");
	else
		(void)err_set(err, error_code(extended), "database: %s",
		    sqlite3_errmsg(db->handle));
	lose_group(db, err);
	return -1;
}

/* ---- transactions ---- */

/* Run one of sql/ that is not kept prepared, whether it works or not. */
static void
try(struct db *db, enum statement which)
{
	(void)sqlite3_exec(db->handle, statement_texts[which].sql, NULL, NULL,
	    NULL);
}

static bool
is_begun(const struct db *db)
{
	return sqlite3_get_autocommit(db->handle) == 0;
}

static int
db_run_statement(struct db *db, enum statement which, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);

	return db_run(db, s, err) < 0 ? -1 : 0;
}

static void
roll_back(struct db *db)
{
	/* SQLite rolls back by itself after some errors. */
	if (is_begun(db))
		try(db, STATEMENT_ROLLBACK);
	if (!is_begun(db))
		turn_give(db);
}

static int
commit(struct db *db, struct err *err)
{
	if (db_run_statement(db, STATEMENT_COMMIT, err) == 0)
		return 0;
	roll_back(db);
	return -1;
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
	return db_run_statement(db, STATEMENT_BEGIN_IMMEDIATE, err);
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

int
db_end(struct db *db, int result, struct err *err)
{
	if (result == 0 && db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return result != 0 ? result : -1;
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
	try(db, lasting ? STATEMENT_CONNECT_LASTING : STATEMENT_CONNECT_QUICK);
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

/* Name of a statement, for messages. */
static const char *
statement_name(const struct stmt *s)
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
	log_err("binding %s to %s: %s", name, statement_name(s),
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

struct stmt *
db_bound(struct db *db, enum statement which, const struct db_value *values)
{
	struct stmt *s = db_statement(db, which);

	for (; values->name != NULL; values++)
		if (values->text != NULL)
			db_bind_text(s, values->name, values->text);
		else
			db_bind_int(s, values->name, values->number);
	return s;
}

/* A statement that changes something begins a transaction if there is none. */
static int
db_wait_turn(struct db *db, sqlite3_stmt *h, struct err *err)
{
	if (sqlite3_stmt_readonly(h) != 0 || is_begun(db) ||
	    turn_take(db, db->role == DB_FRONT ? FRONT_TURN_MS : TURN_MS))
		return 0;
	(void)err_set(err, ERR_BUSY, "database: others write all the time");
	lose_group(db, err);
	return -1;
}

int
db_step(struct db *db, struct stmt *s, struct err *err)
{
	int result;

	if (db_wait_turn(db, s->handle, err) != 0)
		return -1;
	result = sqlite3_step(s->handle);
	if (result == SQLITE_ROW)
		return 1;
	if (result != SQLITE_DONE) {
		(void)failed(db, err);
		(void)err_wrap(err, "%s", statement_name(s));
		/* An automatic transaction ends with its statement. */
		(void)sqlite3_reset(s->handle);
	}
	/* A transaction is over, by a commit or without. */
	if (!is_begun(db))
		turn_give(db);
	return result == SQLITE_DONE ? 0 : -1;
}

int
db_run(struct db *db, struct stmt *s, struct err *err)
{
	int result = db_step(db, s, err);

	if (result == 1) {
		log_err("a row that nobody asked for: %s", statement_name(s));
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
db_change(struct db *db, enum statement which, const struct db_value *values,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, which, values);

	return db_run(db, s, err);
}

int
db_change_quick(struct db *db, enum statement which,
    const struct db_value *values, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, which, values);

	return db_one(db_run_quick(db, s, err));
}

int64_t
db_number(struct db *db, enum statement which, const struct db_value *values,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, which, values);

	return db_step(db, s, err) == 1 ? db_column_int(s, 0) : -1;
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
	log_err("column %d of %s holds an unknown word", column,
	    statement_name(s));
	abort();
}

/* ---- opening ---- */

/* Run a text of several statements that give no rows. */
static int
script(struct db *db, const char *sql, struct err *err)
{
	if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
		return failed(db, err);
	return 0;
}

static int
read_version(struct db *db, int *version, struct err *err)
{
	const char *sql = statement_texts[STATEMENT_SCHEMA_VERSION].sql;
	sqlite3_stmt *s = NULL;
	int result = 0;

	if (sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		*version = sqlite3_column_int(s, 0);
	else
		result = failed(db, err);
	(void)sqlite3_finalize(s);
	return result;
}

static int
db_prepare(struct db *db, struct err *err)
{
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		struct stmt *s = &db->statements[i];
		sqlite3_stmt *h = NULL;
		int result;

		if (s->handle != NULL ||
		    !authorize_has(db->role, statement_texts[i].name))
			continue;
		result = sqlite3_prepare_v3(db->handle, statement_texts[i].sql,
		    -1, SQLITE_PREPARE_PERSISTENT, &h, NULL);
		*s = (struct stmt){ db, h };
		/* Not for this role: db_statement() will not give it out. */
		if (result == SQLITE_OK || result == SQLITE_AUTH)
			continue;
		(void)failed(db, err);
		return err_wrap(err, "statement %s", statement_texts[i].name);
	}
	return 0;
}

/* SQLite would make a file, and what it writes beside it, readable for all.
 * Closed before SQLite opens it, or SQLite's locks would go with it. */
static int
make_file(const char *path, mode_t mode, struct err *err)
{
	auto_close int fd = open(path,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	return fd < 0 || fchmod(fd, mode) != 0 ? err_system(err, "%s", path) :
						 0;
}

static int
connect_file(struct db *db, const char *path, struct err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
	    SQLITE_OPEN_EXRESCODE;

	if (db->role == DB_ADMIN && make_file(path, MODE, err) != 0 &&
	    errno != EEXIST) {
		err->code = ERR_CONFIG;
		return err_wrap(err, "database");
	}
	if (db->role != DB_ADMIN && access(path, F_OK) != 0)
		return err_set(err, ERR_CONFIG,
		    "there is no database yet: run ilctl migrate");
	if (sqlite3_open_v2(path, &db->handle, flags, NULL) != SQLITE_OK) {
		(void)failed(db, err);
		err->code = ERR_CONFIG;
		return -1;
	}
	return 0;
}

static int
configure(struct db *db, struct err *err)
{
	sqlite3 *h = db->handle;

	(void)sqlite3_busy_timeout(h, roles[db->role].busy_ms);
	(void)sqlite3_limit(h, SQLITE_LIMIT_LENGTH, roles[db->role].value_max);
	(void)sqlite3_limit(h, SQLITE_LIMIT_ATTACHED, 0);
	(void)sqlite3_db_config(h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(h, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(h, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	/* views_bounded; what a trigger may do the authorizer decides, too */
	(void)sqlite3_db_config(h, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1, NULL);
	(void)sqlite3_db_config(h, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	(void)sqlite3_db_config(h, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	if (script(db, statement_texts[STATEMENT_CONNECT_ALL].sql, err) != 0)
		return -1;
	return script(db, statement_texts[roles[db->role].recipe].sql, err);
}

/* A program works with exactly the version that it was made for. */
static int
check_version(struct db *db, struct err *err)
{
	int version = 0;

	if (read_version(db, &version, err) != 0)
		return -1;
	if (db->role != DB_ADMIN && version != migration_count)
		return err_set(err, ERR_CONFIG,
		    "the database has version %d, this program needs %d: %s",
		    version, migration_count,
		    version < migration_count ? "run ilctl migrate" :
						"install the newer programs");
	if (sqlite3_set_authorizer(db->handle, authorize, &db->role) !=
	    SQLITE_OK)
		return failed(db, err);
	if (version != migration_count)
		return 0;
	return db_prepare(db, err);
}

void
db_close(struct db *db)
{
	if (db == NULL)
		return;
	for (int i = 0; i < STATEMENT_COUNT; i++)
		(void)sqlite3_finalize(db->statements[i].handle);
	(void)sqlite3_close(db->handle);
	cleanup_close(&db->turn);
	free(db);
}

struct db *
db_open(const char *path, enum db_role role, struct err *err)
{
	struct db *db = xcalloc(1, sizeof(*db));
	bool opened;

	/* SQLite's count of its memory, which nobody asks for, is a tenth of
	 * an insertion.  Refused once a database has been open: as well. */
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	/* When another process has written, SQLite frees its pages and takes
	 * them again.  Given back to the kernel each time, they are a fifth of
	 * a worker's time. */
	(void)mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
	db->role = role;
	db->turn = -1;
	/* A new file becomes one with a WAL here, for which SQLite needs it for
	 * itself and does not wait: one after another. */
	if (role == DB_ADMIN) {
		turn_open(db, path);
		(void)turn_take(db, ADMIN_BUSY_MS);
	}
	opened = connect_file(db, path, err) == 0 && configure(db, err) == 0 &&
	    check_version(db, err) == 0;
	turn_give(db);
	if (opened && role != DB_READER && role != DB_ADMIN)
		turn_open(db, path);
	if (opened)
		return db;
	db_close(db);
	(void)err_wrap(err, "%s", path);
	return NULL;
}

/* ERR_CONFIG has other causes than the version: then it does not open as
 * DB_ADMIN either, or there is nothing to migrate, and err says why. */
struct db *
db_start(const char *path, enum db_role role, struct err *err)
{
	auto_db struct db *admin = NULL;
	struct db *db = db_open(path, role, err);
	struct err why;
	int applied;

	if (db != NULL || err->code != ERR_CONFIG)
		return db;
	admin = db_open(path, DB_ADMIN, &why);
	if (admin == NULL)
		return NULL;
	applied = db_migrate(admin, &why);
	if (applied < 0) {
		log_err("database: it cannot be migrated: %s", why.text);
		return NULL;
	}
	log_info("database: %d migrations applied", applied);
	return db_open(path, role, err);
}

static int
db_claim_name(struct db *db, const struct config *config, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_NODE_CLAIM,
	    DB_VALUES(BIND(":name", config->node)));
	struct err ignored;
	const char *name;

	if (db_step(db, s, &ignored) != 1)
		return 0;
	name = db_column_text(s, 0);
	if (strcmp(name, config->node) == 0)
		return 0;
	return err_set(err, ERR_CONFIG,
	    "%s is the database of node %s, not of %s (IL_NODE); if that was "
	    "renamed: UPDATE node SET name = '%s'",
	    config->database, name, config->node, config->node);
}

int
db_claim(const struct config *config, struct err *err)
{
	auto_db struct db *db = NULL;
	struct err ignored;

	if (*config->nodes != '\0')
		db = db_start(config->database, DB_NODE, &ignored);
	return db != NULL ? db_claim_name(db, config, err) : 0;
}

/* PASSIVE waits for nobody and holds nobody up; when all was written back, the
 * next writer starts the WAL again from its beginning. */
void
db_checkpoint(struct db *db)
{
	(void)sqlite3_wal_checkpoint_v2(db->handle, NULL,
	    SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/* ---- the schema ---- */

/* One migration in one transaction, which the caller rolls back if it fails.
 * The version is read again inside it: another process may have been faster.
 * Returns how many were applied, 1 or 0. */
static int
migrate_one(struct db *db, const struct migration *m, struct err *err)
{
	int version = 0;

	if (script(db, "BEGIN IMMEDIATE", err) != 0 ||
	    read_version(db, &version, err) != 0)
		return -1;
	if (version >= m->version)
		return 0;
	if (script(db, m->sql, err) != 0 ||
	    read_version(db, &version, err) != 0)
		return -1;
	if (version != m->version)
		return err_set(err, ERR_CONFIG, "it leaves user_version at %d",
		    version);
	return script(db, "COMMIT", err) == 0 ? 1 : -1;
}

int
db_migrate(struct db *db, struct err *err)
{
	int applied = 0;
	int version = 0;

	if (read_version(db, &version, err) != 0)
		return -1;
	if (version > migration_count)
		return err_set(err, ERR_CONFIG,
		    "the database has version %d, this program knows %d",
		    version, migration_count);
	for (; version < migration_count; version++) {
		const struct migration *m = &migrations[version];
		int result = migrate_one(db, m, err);

		db_rollback(db);
		if (result < 0)
			return err_wrap(err, "migration %d (%s)", m->version,
			    m->name);
		applied += result;
	}
	return db_prepare(db, err) == 0 ? applied : -1;
}

/* ---- a copy ---- */

/* All pages in one step: readers hold up no writer. */
int
db_copy(struct db *db, const char *path, struct err *err)
{
	sqlite3 *copy = NULL;
	sqlite3_backup *backup = NULL;
	int result;

	if (make_file(path, 0600, err) != 0)
		return -1;
	result = sqlite3_open_v2(path, &copy,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX |
		SQLITE_OPEN_EXRESCODE,
	    NULL);
	if (result == SQLITE_OK)
		backup = sqlite3_backup_init(copy, "main", db->handle, "main");
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
	return sqlite3_close(copy) != SQLITE_OK ?
	    err_set(err, ERR_SYSTEM, "close %s", path) :
	    0;
}
