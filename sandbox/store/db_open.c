/* SPDX-License-Identifier: MIT */
/* A connection's opening and end, and the rights of its role; the schema, and a
 * copy of all. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/basics.h"
#include "base/config.h"
#include "migrations.h"
#include "store/connection.h"
#include "store/db.h"

#define MODE 0660 /* fronts and workers are one group */
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

/* ---- the rights of each role ---- */

/* SQLite itself holds them: it asks here about every table, column and function
 * while it prepares a statement.  A backstop: even SQL that an attacker could
 * choose would read no token and change no state. */

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
		"replace", "substr", "->>", NULL };
	/* A person's rows are carried as JSON. */
	static const char *const of_node[] = { "json", "json_object",
		"json_group_array", "json_valid", "iif", NULL };

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

static int
authorize(void *role, int action, const char *a, const char *b,
    const char *database, const char *trigger)
{
	(void)database;
	return may((enum db_role) * (const int *)role, action, a, b, trigger) ?
	    SQLITE_OK :
	    SQLITE_DENY;
}

/* Statements that set a connection up are run, not prepared; an operator's
 * lists would be kilobytes of each worker and each front, as would what carries
 * people. */
static bool
authorize_has(enum db_role role, const char *statement)
{
	if (strncmp(statement, "person_", 7) == 0)
		return role == DB_NODE || role == DB_ADMIN;
	if (strncmp(statement, "list_", 5) == 0)
		return role == DB_READER || role == DB_NODE || role == DB_ADMIN;
	return strncmp(statement, "connect_", 8) != 0;
}

/* ---- opening ---- */

/* Run a text of several statements that give no rows. */
static int
script(struct db *db, const char *sql, struct err *err)
{
	if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
		return db_failed(db, err);
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
		result = db_failed(db, err);
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
		(void)db_failed(db, err);
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

/* Open "<database>-turn"; on failure turns are not taken. */
static void
turn_open(struct db *db, const char *path)
{
	auto_free char *name = xprintf("%s-turn", path);

	db->turn = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (db->turn >= 0)
		(void)fchmod(db->turn, MODE); /* in spite of the umask */
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
		(void)db_failed(db, err);
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
		return db_failed(db, err);
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
		(void)db_turn_take(db, ADMIN_BUSY_MS);
	}
	opened = connect_file(db, path, err) == 0 && configure(db, err) == 0 &&
	    check_version(db, err) == 0;
	db_turn_give(db);
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
