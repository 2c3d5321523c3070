/* SPDX-License-Identifier: MIT */
/* Opening, migrating and the rights of each role. */
#include "store.h"

#include "migrations.h"
#include "store/connection.h"
#include "store/job.h"

static void
test_open(void)
{
	struct err err = { 0 };
	char path[300];
	char folder[] = "/tmp";
	struct stat st;
	struct db *db;

	(void)snprintf(path, sizeof(path), "%s.none", store_path);
	ok(db_open(path, DB_FRONT, &err) == NULL, "a missing file");
	is_int(err.code, ERR_CONFIG, "is a matter of configuration");
	ok(strstr(err.text, "run ilctl migrate") != NULL, "says what to do");
	ok(access(path, F_OK) != 0, "and nothing is made");
	ok(db_open(folder, DB_ADMIN, &err) == NULL, "a folder");
	is_int(err.code, ERR_CONFIG, "is one too");
	db = db_open(path, DB_ADMIN, &err);
	ok(db != NULL, "an operator makes the file");
	ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0660,
	    "for its group, whatever the umask");
	ok(db_open(path, DB_WORKER, &err) == NULL,
	    "a worker does not take an empty one");
	ok(strstr(err.text, "run ilctl migrate") != NULL, "says what to do");
	is_int(db_migrate(db, &err), migration_count, "all migrations run");
	is_int(db_migrate(db, &err), 0, "and not again");
	db_close(db);
	db = db_open(path, DB_WORKER, &err);
	ok(db != NULL, "then a worker opens it");
	db_close(db);
	db_close(NULL);
}

static void
test_copy(void)
{
	struct err err = { 0 };
	char path[300];
	struct stat st;
	struct db *db = db_open(store_path, DB_WORKER, &err);
	mode_t mask = umask(0);

	(void)snprintf(path, sizeof(path), "%s.copy", store_path);
	is_int(db_copy(db, path, &err), 0, "a copy");
	ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600,
	    "is for its owner alone, whatever the umask");
	is_int(db_copy(db, path, &err), -1, "and overwrites nothing");
	(void)umask(mask);
	(void)unlink(path);
	db_close(db);
}

static void
test_newer(void)
{
	struct err err = { 0 };
	struct db *db;

	(void)store_sql("PRAGMA user_version = 9999");
	ok(db_open(store_path, DB_FRONT, &err) == NULL, "a newer version");
	ok(strstr(err.text, "newer programs") != NULL, "says what to do");
	db = db_open(store_path, DB_ADMIN, &err);
	is_int(db_migrate(db, &err), -1, "is not migrated down");
	db_close(db);
	(void)snprintf(err.text, sizeof(err.text), "PRAGMA user_version = %d",
	    migration_count);
	(void)store_sql(err.text);
}

/* A service that starts. */
static void
test_start(void)
{
	struct err err = { 0 };
	char path[300];
	struct db *db;

	(void)snprintf(path, sizeof(path), "%s.start", store_path);
	db = db_start(path, DB_FRONT, &err);
	ok(db != NULL, "a service makes the file and its tables");
	db_close(db);
	db = db_open(path, DB_ADMIN, &err);
	is_int(db_migrate(db, &err), 0, "all of them");
	db_close(db);
	(void)unlink(path);

	(void)store_sql("PRAGMA user_version = 9999");
	ok(db_start(store_path, DB_WORKER, &err) == NULL,
	    "with a newer version it does not start");
	is_int(err.code, ERR_CONFIG, "nor by itself later");
	ok(strstr(err.text, "newer programs") != NULL, "says what to do");
	(void)snprintf(err.text, sizeof(err.text), "PRAGMA user_version = %d",
	    migration_count);
	(void)store_sql(err.text);
}

/* SQLite's result for a text, on a connection of a role. */
static int
verdict(struct db *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(db->handle, sql, -1, &s, NULL);

	(void)sqlite3_finalize(s);
	return result;
}

static void
test_front(void)
{
	static const char *const refused[] = {
		"SELECT token FROM jobs",
		"SELECT text FROM jobs",
		"SELECT input FROM jobs",
		"SELECT body FROM jobs",
		"SELECT attachment_url FROM jobs",
		"SELECT * FROM jobs",
		"SELECT text FROM views",
		"SELECT input FROM views",
		"UPDATE jobs SET state = 'queued'",
		"DELETE FROM jobs",
		"UPDATE sandboxes SET cwd = ''",
		"DELETE FROM sandboxes",
		"INSERT INTO sandboxes (id) VALUES ('x')",
		"UPDATE views SET user_id = 1",
		"DELETE FROM views",
		"INSERT INTO names VALUES ('x', 'file', '', 'x')",
		"UPDATE names SET name = ''",
		"DELETE FROM names",
		"CREATE TABLE t (a)",
		"CREATE TEMP TABLE t (a)",
		"DROP TABLE jobs",
		"ALTER TABLE jobs ADD COLUMN a",
		"ATTACH 'x' AS x",
		"PRAGMA journal_mode = DELETE",
		"PRAGMA user_version = 7",
		"SELECT load_extension('x')",
		"SELECT * FROM pragma_table_info('jobs')",
		"CREATE TRIGGER t AFTER INSERT ON jobs BEGIN SELECT 1; END",
		"CREATE VIEW v AS SELECT 1",
		"REINDEX",
		"ANALYZE",
	};
	static const char *const allowed[] = {
		"SELECT cwd FROM sandboxes",
		"SELECT state, id FROM jobs",
		"SELECT path FROM views",
		"SELECT name FROM names",
		"BEGIN IMMEDIATE",
		"PRAGMA user_version",
	};
	struct db *db = store_open(DB_FRONT);

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		ok(verdict(db, refused[i]) != SQLITE_OK, refused[i]);
	is_int(verdict(db, refused[0]), SQLITE_AUTH, "by the authorizer");
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		is_int(verdict(db, allowed[i]), SQLITE_OK, allowed[i]);
	ok(db->statements[STATEMENT_JOB_INSERT].handle != NULL,
	    "it inserts jobs");
	ok(db->statements[STATEMENT_SANDBOX_FIND].handle != NULL,
	    "finds sandboxes");
	ok(db->statements[STATEMENT_NAMES_SUGGEST].handle != NULL,
	    "reads names");
	ok(db->statements[STATEMENT_NAMES_ADD].handle == NULL,
	    "and keeps none");
	ok(db->statements[STATEMENT_JOB_CLAIM].handle == NULL, "claims no job");
	ok(db->statements[STATEMENT_JOB_NEXT_UNTOLD].handle == NULL,
	    "and reads no token");
	db_close(db);
}

static void
test_reader_and_worker(void)
{
	struct db *reader = store_open(DB_READER);
	struct db *worker = store_open(DB_WORKER);
	struct err err = { 0 };
	struct job_counts counts;

	is_int(verdict(reader,
		   "INSERT INTO views (user_id, kind, created_ms) "
		   "VALUES (1, 'look', 1)"),
	    SQLITE_AUTH, "a reader inserts nothing");
	is_int(verdict(reader, "SELECT token FROM jobs"), SQLITE_AUTH,
	    "and reads no token");
	is_int(job_count(reader, &counts, &err), 0, "it counts jobs");
	is_int(verdict(worker, "SELECT token FROM jobs"), SQLITE_OK,
	    "a worker reads tokens");
	is_int(verdict(worker, "DROP TABLE jobs"), SQLITE_AUTH,
	    "but does not change the schema");
	is_int(verdict(worker, "ATTACH 'x' AS x"), SQLITE_AUTH,
	    "nor opens another file");
	ok(verdict(worker, "SELECT json('0')") != SQLITE_OK,
	    "nor calls what carries people");
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		const char *name = statement_texts[i].name;

		if (strncmp(name, "list_", 5) == 0 &&
		    (reader->statements[i].handle == NULL ||
			worker->statements[i].handle != NULL))
			ok(false, name);
		if (strncmp(name, "person_", 7) == 0 &&
		    worker->statements[i].handle != NULL)
			ok(false, name);
		/* the operator's: test_store_rule.c; il-node's */
		if (strcmp(name, "rule_put") == 0 ||
		    strcmp(name, "rule_tidy") == 0 ||
		    strncmp(name, "person_", 7) == 0 ||
		    strncmp(name, "list_", 5) == 0)
			continue;
		if (strncmp(name, "connect_", 8) != 0 &&
		    worker->statements[i].handle == NULL)
			ok(false, name);
	}
	ok(true, "every other statement is a worker's");
	db_close(reader);
	db_close(worker);
}

static void
test_transaction(void)
{
	struct err err = { 0 };
	struct db *a = store_open(DB_WORKER);
	struct db *b = store_open(DB_WORKER);
	struct view view = { .user_id = 1, .kind = JOB_PY, .page = 1 };

	(void)sqlite3_busy_timeout(b->handle, 10);
	is_int(view_insert(a, &view, &err), 0, "insert");
	is_int(db_begin(a, &err), 0, "begin");
	is_int(view_set_page(a, view.id, 2, &err), 0, "change");
	is_int(db_begin(b, &err), -1, "another cannot begin");
	is_int(err.code, ERR_BUSY, "it is busy");
	(void)view_find(b, view.id, &view, NULL, &err);
	is_int(view.page, 1, "nor sees it");
	db_rollback(a);
	(void)view_find(a, view.id, &view, NULL, &err);
	is_int(view.page, 1, "rolled back");
	db_rollback(a);
	is_int(db_begin(b, &err), 0, "then the other can");
	is_int(db_commit(b, &err), 0, "commit");
	is_int(db_commit(b, &err), -1, "nothing to commit is an error");
	view.user_id = 0;
	is_int(view_insert(a, &view, &err), -1, "a CHECK holds");
	is_int(err.code, ERR_INPUT, "it is bad input");
	db_checkpoint(a);
	db_close(a);
	db_close(b);
}

static void
test_busy_front(void)
{
	struct err err = { 0 };
	struct db *front = store_open(DB_FRONT);
	struct db *worker = store_open(DB_WORKER);
	struct job job = store_job(1, JOB_PY);
	int64_t began = clock_monotonic_ms();

	(void)db_begin(worker, &err);
	is_int(job_insert(front, &job, &store_limits, &err), JOB_INSERT_FAILED,
	    "a front that cannot write in time gives up");
	is_int(err.code, ERR_BUSY, "as busy");
	ok(clock_monotonic_ms() - began < 8000, "long before a worker does");
	db_rollback(worker);
	is_int(job_insert(front, &job, &store_limits, &err), JOB_INSERTED,
	    "and works again afterwards");
	job_release(&job);
	db_close(front);
	db_close(worker);
}

/* Only what carries people has room for all that a person has. */
static void
test_values(void)
{
	static const int most[] = { [DB_FRONT] = 8,
		[DB_READER] = 8,
		[DB_WORKER] = 8,
		[DB_NODE] = 32,
		[DB_ADMIN] = 32 };

	for (size_t role = 0; role < sizeof(most) / sizeof(*most); role++) {
		struct err err;
		struct db *db = db_open(store_path, (enum db_role)role, &err);

		is_int(sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, -1),
		    most[role] << 20, "the longest value of a role");
		db_close(db);
	}
}

int
main(void)
{
	(void)store_make();
	test_open();
	test_copy();
	test_newer();
	test_start();
	test_front();
	test_reader_and_worker();
	test_transaction();
	test_busy_front();
	test_values();
	return tap_done();
}
