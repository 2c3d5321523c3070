/* SPDX-License-Identifier: MIT */
/* What PostgreSQL alone has: rights of roles, plans, holders of jobs, what
 * workers hear, connections that go. */
#include <poll.h>

#include "sandbox/store/driver.h"
#include "sandbox/store/holder.h"
#include "sandbox/store/sandbox.h"
#include "sandbox/store/view.h"

#include "migrations.h"
#include "store.h"

/* ---- rights: the same that authorize.c holds in SQLite ---- */

static const char *const private_columns = "'token', 'text', 'input', 'body', "
					   "'attachment_url', 'output', "
					   "'files', 'package'";

static void
test_rights(void)
{
	char sql[1024];

	is_int(store_sql("SELECT count(*) FROM pg_class AS c WHERE relkind = "
			 "'r' AND relnamespace = 'public'::regnamespace AND "
			 "(has_table_privilege('il_front', oid, 'UPDATE') OR "
			 "has_table_privilege('il_front', oid, 'DELETE, "
			 "TRUNCATE') OR has_table_privilege('il_reader', oid, "
			 "'INSERT, UPDATE, DELETE, TRUNCATE'))"),
	    0, "fronts change and delete nothing, readers write nothing");
	is_int(store_sql("SELECT count(*) FROM pg_class WHERE relkind = 'r' "
			 "AND relnamespace = 'public'::regnamespace AND "
			 "has_table_privilege('il_front', oid, 'INSERT')"),
	    2, "fronts insert into two tables");
	(void)snprintf(sql, sizeof(sql),
	    "SELECT count(*) FROM pg_attribute JOIN pg_class ON attrelid = "
	    "pg_class.oid WHERE relname IN ('jobs', 'views') AND attnum > 0 "
	    "AND has_column_privilege('il_front', attrelid, attnum, 'SELECT') "
	    "<> (attname NOT IN (%s))",
	    private_columns);
	is_int(store_sql(sql), 0,
	    "they read every column but those with what people said");
	is_int(store_sql("SELECT count(*) FROM pg_class WHERE relkind = 'r' "
			 "AND relnamespace = 'public'::regnamespace AND NOT "
			 "has_table_privilege('il_worker', oid, 'SELECT')"),
	    0, "workers read all");
	is_int(store_sql("SELECT count(*) FROM pg_class WHERE relkind = 'r' "
			 "AND relnamespace = 'public'::regnamespace AND "
			 "has_table_privilege('il_worker', oid, 'INSERT, "
			 "UPDATE, DELETE, TRUNCATE') = "
			 "(relname IN ('rules', 'inline_schema'))"),
	    0, "and write all but what the operator has said");
	is_int(store_sql("SELECT count(*) FROM pg_roles WHERE rolname IN "
			 "('il_front', 'il_reader', 'il_worker') AND "
			 "(rolcanlogin OR rolsuper OR rolcreaterole)"),
	    0, "none of the roles can do more");
}

/* A front asks what is not for it: the server refuses. */
static void
test_refused(void)
{
	struct err err = { 0 };
	struct db *front = store_open(DB_FRONT);
	struct sandbox sandbox;
	bool created;
	struct job job;

	ok(store_insert(front, 1, JOB_PY) > 0, "it inserts");
	is_int(job_claim(front, 1, &job, &err), -1, "but claims nothing");
	is_int(err.code, ERR_CONFIG, "for which it has no right");
	is_int(sandbox_create(front, 1, 1, &sandbox, &created, &err), -1,
	    "nor makes a sandbox");
	(void)store_sql("DELETE FROM jobs");
	db_close(front);
}

/* ---- plans ---- */

/* Statements that look at jobs must not walk through those that are over. */
static void
test_plans(void)
{
	static const struct {
		const char *what;
		const char *sql;
		const char *index;
	} plans[] = {
		{ "a claim",
		    "SELECT id FROM jobs WHERE state = 'queued' AND open "
		    "AND home = 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
		    "jobs_open" },
		{ "a look",
		    "SELECT 1 FROM jobs WHERE state = 'queued' AND open AND "
		    "home = 1",
		    "jobs_open" },
		{ "one job for a user",
		    "SELECT kind FROM jobs WHERE user_id = 5 AND state IN "
		    "('queued', 'claimed', 'started') AND busy AND alone = 1",
		    "jobs_one_for_user" },
		{ "a known interaction",
		    "SELECT 1 FROM jobs WHERE interaction_id = 5",
		    "jobs_interaction" },
		{ "a rate",
		    "SELECT 1 FROM jobs WHERE user_id = 5 AND received_ms > "
		    "5 LIMIT 10",
		    "jobs_rate" },
		{ "what a holder left",
		    "SELECT 1 FROM jobs WHERE state = 'claimed' AND "
		    "claimed_by = 5 AND open",
		    "jobs_open" },
		{ "pruning",
		    "SELECT id FROM jobs WHERE received_ms < 5 AND state IN "
		    "('delivered', 'undeliverable') ORDER BY received_ms "
		    "LIMIT 200",
		    "jobs_received" },
		{ "views of a user",
		    "SELECT created_ms FROM views WHERE user_id = 5 "
		    "ORDER BY id DESC LIMIT 5",
		    "views_user" },
		{ "names of a sandbox",
		    "SELECT name FROM names WHERE sandbox_id = 'x' AND kind "
		    "= 'file' ORDER BY python, name",
		    "names_pkey" },
	};
	char sql[2048];

	(void)store_sql(
	    "INSERT INTO jobs (interaction_id, application_id, user_id, kind, "
	    "state, answer, token, received_ms, attachment_limit, may_attach) "
	    "SELECT 1000000 + i, 1, 1 + i % 5000, 'py', 'delivered', "
	    "'deferred', '', i, 0, 1 FROM generate_series(1, 20000) AS i");
	(void)store_sql("INSERT INTO views (user_id, kind, created_ms) SELECT "
			"1 + i % 900, 'py', i FROM generate_series(1, 9000) "
			"AS i");
	(void)store_sql("INSERT INTO names SELECT 'sandbox' || i % 90, 'file', "
			"'', 'n' || i FROM generate_series(1, 9000) AS i");
	(void)store_sql("ANALYZE jobs, views, names");
	(void)store_sql(
	    "CREATE FUNCTION plan_of(text) RETURNS text LANGUAGE plpgsql AS $$ "
	    "DECLARE r record; t text := ''; BEGIN FOR r IN EXECUTE 'EXPLAIN ' "
	    "|| $1 LOOP t := t || r.\"QUERY PLAN\" || ' '; END LOOP; RETURN t; "
	    "END $$");
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		(void)snprintf(sql, sizeof(sql),
		    "SELECT plan_of($q$%s$q$) LIKE '%%%s%%'", plans[i].sql,
		    plans[i].index);
		ok(store_sql(sql) == 1, plans[i].what);
	}
	(void)store_sql("DELETE FROM jobs; DELETE FROM views; "
			"DELETE FROM names");
	(void)store_sql("VACUUM jobs, views, names");
}

/* Claimed and started without a word into any index. */
static void
test_hot(void)
{
	struct err err = { 0 };
	struct db *worker = store_open(DB_WORKER);
	struct job job;
	int64_t holder = 0;
	int64_t id = store_insert(worker, 1, JOB_PY);

	(void)holder_take(worker, "here", 1, &holder, &err);
	(void)job_claim(worker, holder, &job, &err);
	job_release(&job);
	is_int(job_start(worker, id, holder, &err), 0, "start");
	(void)job_finish(worker, id, holder, "{}", "exit 0", -1, &err);
	(void)job_delivered(worker, id, &err);
	db_close(worker);
	(void)store_sql("SELECT pg_sleep(0.1)");
	ok(store_sql("SELECT n_tup_hot_upd >= 2 AND n_tup_upd = 4 FROM "
		     "pg_stat_get_snapshot_timestamp(), pg_stat_user_tables "
		     "WHERE relname = 'jobs'") == 1 ||
		store_sql("SELECT n_tup_hot_upd FROM pg_stat_user_tables "
			  "WHERE relname = 'jobs'") >= 2,
	    "two of four changes are HOT");
	(void)store_sql("DELETE FROM jobs");
}

/* ---- holders ---- */

static void
test_holder(void)
{
	struct err err = { 0 };
	struct db *a = store_open(DB_WORKER);
	struct db *b = store_open(DB_WORKER);
	int64_t first = 0;
	int64_t again = 0;
	int64_t other = 0;
	struct job job;
	int64_t started;

	ok(holder_is_shared(a), "the database says who lives");
	is_int(holder_take(a, "one", 0, &first, &err), 0, "a number");
	is_int(holder_take(a, "one", 0, &again, &err), 0, "asked again");
	is_int(again, first, "is the same");
	is_int(holder_take(b, "two", 0, &other, &err), 0, "another worker's");
	ok(other != first, "is another one");
	started = store_insert(a, 1, JOB_PY);
	is_int(job_claim(a, first, &job, &err), 0, "one claims");
	job_release(&job);
	is_int(job_start(a, started, first, &err), 0, "and starts");
	is_int(holder_take_over(b, "two", 0, first, &err), 1,
	    "nobody takes it from one who lives");
	(void)store_cut("il-worker");
	is_int(holder_take(a, "one", 0, &again, &err), 0, "cut off and back");
	is_int(again, first, "it has its number again");
	/* now it is cut off for good */
	db_close(a);
	is_int(holder_take_over(b, "two", 0, first, &err), 1,
	    "one who went just now may come back");
	if (err.code != ERR_NONE)
		note("%s", err.text);
	is_int(store_sql("SELECT count(*) FROM holders WHERE left_at IS NOT "
			 "NULL"),
	    1, "since when is noted, by the database's clock");
	is_int(holder_take_over(b, "two", 0, first, &err), 1, "not yet");
	(void)store_sql("UPDATE holders SET left_at = left_at - interval '61 "
			"s' WHERE left_at IS NOT NULL");
	is_int(holder_take_over(b, "two", 0, first, &err), 0,
	    "after a minute it is taken over");
	is_int(job_finish(b, started, first, "{}", "exit 0", -1, &err), 1,
	    "a late finish matches no row");
	is_int(job_recover(b, other, &err), 1, "it is recovered");
	is_int(store_sql("SELECT count(*) FROM jobs WHERE state = 'lost'"), 1,
	    "as lost, since it had been started");
	is_int(job_next_untold(b, other, 0, &job, &err), 0, "to be told");
	ok(job.lost, "as interrupted");
	job_release(&job);
	(void)store_sql("DELETE FROM jobs");
	db_close(b);
}

/* A worker that comes back after its jobs were taken over. */
static void
test_zombie(void)
{
	struct err err = { 0 };
	struct db *a = store_open(DB_WORKER);
	int64_t first = 0;
	int64_t later = 0;
	struct job job;

	(void)holder_take(a, "one", 0, &first, &err);
	(void)store_sql("DELETE FROM holders");
	(void)store_cut("il-worker");
	is_int(holder_take(a, "one", 0, &later, &err), 0, "it comes back");
	ok(later != first, "with another number");
	(void)store_insert(a, 1, JOB_PY);
	is_int(job_claim(a, first, &job, &err), 0,
	    "a claim that goes on with the old one");
	job_release(&job);
	is_int(holder_take_over(a, "one", 0, first, &err), 0,
	    "is taken over at once: the number is nobody's");
	is_int(job_recover(a, later, &err), 1, "and queued again");
	is_int(holder_take_over(a, "one", 0, first, &err), 1, "once");
	(void)store_sql("DELETE FROM jobs");
	db_close(a);
}

/* The next worker of a slot on the same node need not wait: it has the slot's
 * file lock. */
static void
test_successor(void)
{
	struct err err = { 0 };
	struct db *a = store_open(DB_WORKER);
	struct db *b;
	int64_t first = 0;
	int64_t next = 0;
	struct job job;
	int64_t id = store_insert(a, 1, JOB_PY);

	(void)holder_take(a, "one", 3, &first, &err);
	(void)job_claim(a, first, &job, &err);
	job_release(&job);
	db_close(a);
	b = store_open(DB_WORKER);
	(void)holder_take(b, "one", 3, &next, &err);
	is_int(holder_take_over(b, "one", 3, first, &err), 0,
	    "taken over at once");
	is_int(job_recover(b, next, &err), 1, "and queued again");
	is_int(job_claim(b, next, &job, &err), 0, "claimed");
	is_int(job.id, id, "the same job");
	job_release(&job);
	(void)store_sql("DELETE FROM jobs");
	db_close(b);
}

/* ---- what is heard ---- */

static void
test_notify(void)
{
	struct err err = { 0 };
	struct db *front = store_open(DB_FRONT);
	struct db *worker = store_open(DB_WORKER);
	struct pollfd at = { .events = POLLIN };

	is_int(holder_listen(worker, &err), 0, "listen");
	ok(!holder_heard(worker, &at.fd), "nothing is heard");
	ok(at.fd >= 0, "there is something to wait on");
	(void)store_insert(front, 1, JOB_PY);
	holder_notify(front, 0);
	is_int(poll(&at, 1, 10000), 1, "it is readable");
	ok(holder_heard(worker, &at.fd), "and heard");
	ok(!holder_heard(worker, &at.fd), "once");
	is_int(store_insert(front, 1, JOB_PY), 0, "the answer is not mixed up");
	ok(store_insert(front, 2, JOB_PY) > 0, "with the next");
	(void)store_cut("il-worker");
	is_int(job_peek(worker, &err), 0, "on a new connection");
	(void)holder_heard(worker, &at.fd);
	holder_notify(front, 0);
	is_int(poll(&at, 1, 10000), 1, "it listens again");
	(void)store_sql("DELETE FROM jobs");
	db_close(front);
	db_close(worker);
}

/* ---- two hosts ---- */

static void
test_two_fronts(void)
{
	struct err err = { 0 };
	struct db *a = store_open(DB_FRONT);
	struct db *b = store_open(DB_FRONT);
	struct job job = store_job(7, JOB_PY);
	struct job same = store_job(7, JOB_PY);
	struct job waits = store_job(8, JOB_PY);

	same.interaction_id = job.interaction_id;
	is_int(job_is_inserted(a, job.interaction_id, 5000, &err), 1,
	    "not there");
	is_int(job_insert(a, &job, &store_limits, &err), JOB_INSERTED, "one");
	is_int(job_insert(b, &same, &store_limits, &err), JOB_REPEATED,
	    "the same interaction elsewhere");
	same.interaction_id++;
	is_int(job_insert(b, &same, &store_limits, &err), JOB_RUNNING,
	    "another of the same user");
	is_int(job_is_inserted(b, job.interaction_id, 5000, &err), 0,
	    "it is found");
	is_int(store_sql("SELECT count(*) FROM jobs"), 1, "and nothing made");
	/* whose commit has not come, or waits for a replica */
	db_group_begin(a);
	is_int(job_insert(a, &waits, &store_limits, &err), JOB_INSERTED, "one");
	is_int(job_is_inserted(b, waits.interaction_id, 100, &err), -1,
	    "of one on its way nobody knows");
	is_int(db_group_commit(a, &err), 0, "it is committed");
	is_int(job_is_inserted(b, waits.interaction_id, 5000, &err), 0,
	    "now it is there");
	is_int(db_begin(b, &err), 0, "and all goes on");
	is_int(job_peek(b, &err), 0, "in transactions, too");
	db_rollback(b);
	job_release(&waits);
	job_release(&job);
	job_release(&same);
	(void)store_sql("DELETE FROM jobs");
	db_close(a);
	db_close(b);
}

/* What is not UTF-8 would be refused, and lose what it came with. */
static void
test_texts(void)
{
	struct err err = { 0 };
	struct db *worker = store_open(DB_WORKER);
	struct view_texts texts = { .text = (char *)(uintptr_t) "a\xff z",
		.output = (char *)(uintptr_t) "\xf0\x9f" };
	struct view view = { .user_id = 1, .kind = JOB_PY, .texts = &texts };
	struct view_texts read = { 0 };

	is_int(view_insert(worker, &view, &err), 0, "stored");
	is_int(view_load(worker, view.id, &view, &read, &err), 0, "read");
	is_str(read.text, "a? z", "with a mark in its place");
	is_str(read.output, "??", "also at the end");
	view_texts_release(&read);
	db_close(worker);
}

int
main(void)
{
	if (!store_is_postgres())
		skip_all("tests/store/postgres.t runs it on PostgreSQL");
	(void)store_make();
	is_int(store_sql("SELECT version FROM inline_schema"), migration_count,
	    "both databases have the same version");
	test_rights();
	test_refused();
	test_plans();
	test_hot();
	test_holder();
	test_zombie();
	test_successor();
	test_notify();
	test_two_fronts();
	test_texts();
	return tap_done();
}
