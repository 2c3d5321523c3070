/* SPDX-License-Identifier: MIT */
/* Sessions of PostgreSQL: whose number they hold, what of theirs lasts, and
 * what a trigger reads in them. */
#include <signal.h>
#include <sys/wait.h>

#include "sandbox/store/holder.h"

#include "store.h"

/* ---- holders ---- */

/* The server still has the session from which it was cut off, as a proxy in
 * between does: here a child's, with the same lock. */
static void
test_kept_session(void)
{
	struct err err = { 0 };
	struct db *a = store_open(DB_WORKER);
	int64_t first = 0;
	int64_t again = 0;
	int ready[2];
	char sql[128];
	pid_t child;

	(void)holder_take(a, "one", 0, &first, &err);
	(void)snprintf(sql, sizeof(sql),
	    "SELECT pg_advisory_lock(1768713070, %d)", (int)first);
	(void)store_cut("il-worker");
	is_int(pipe(ready), 0, "a pipe");
	child = fork();
	if (child == 0) {
		(void)store_sql(sql);
		(void)!write(ready[1], "", 1);
		(void)pause();
	}
	is_int(read(ready[0], sql, 1), 1, "the session before is there");
	is_int(holder_take(a, "one", 0, &again, &err), 0, "it is ended");
	is_int(again, first, "and the number is held again");
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	(void)store_sql("DELETE FROM holders");
	db_close(a);
}

/* It has no number at present, so it can take over nothing. */
static void
test_no_number(void)
{
	struct err err = { 0 };
	struct db *a = store_open(DB_WORKER);
	struct db *dead = store_open(DB_WORKER);
	int64_t number = 0;
	int64_t left = 0;
	struct job job;

	(void)holder_take(a, "one", 0, &number, &err);
	(void)holder_take(dead, "two", 0, &left, &err);
	(void)store_insert(a, 1, JOB_PY);
	is_int(job_claim(dead, left, &job, &err), 0, "one claims");
	job_release(&job);
	db_close(dead);
	(void)
	    store_sql("DELETE FROM holders WHERE node = 'one'; UPDATE "
		      "holders SET left_at = '2001-01-01' WHERE node = 'two'");
	(void)store_cut("il-worker");
	is_int(holder_take_over(a, "one", 0, left, &err), 1,
	    "who was taken over takes over nothing");
	is_int(store_sql("SELECT count(*) FROM jobs JOIN holders ON "
			 "holders.id = claimed_by"),
	    1, "a job's holder is there");
	(void)store_sql("DELETE FROM jobs; DELETE FROM holders");
	db_close(a);
}

/* ---- what lasts ---- */

/* The log's writer of its own comes by every ten seconds (postgres.t). */
static void
test_flush(void)
{
	struct err err = { 0 };
	struct db *worker = store_open(DB_WORKER);
	struct job job;
	int64_t holder = 0;
	int64_t id = store_insert(worker, 1, JOB_PY);

	(void)holder_take(worker, "here", 1, &holder, &err);
	(void)job_claim(worker, holder, &job, &err);
	job_release(&job);
	(void)job_start(worker, id, holder, &err);
	is_int(job_finish(worker, id, holder, "{}", "exit 0", -1, &err), 0,
	    "finished");
	(void)store_sql("SELECT set_config('test.here', CAST("
			"pg_current_wal_insert_lsn() AS TEXT), false)");
	is_int(db_flush(worker, &err), 0, "and flushed");
	is_int(store_sql("SELECT pg_current_wal_flush_lsn() >= CAST("
			 "current_setting('test.here') AS pg_lsn)"),
	    1, "it is on the disk");
	(void)store_sql("DELETE FROM jobs");
	db_close(worker);
}

/* Others take all that a claim sees: what came meanwhile is not left lying.
 * Here the first change comes to nothing. */
static void
test_claim_again(void)
{
	struct err err = { 0 };
	struct db *worker = store_open(DB_WORKER);
	int64_t holder = 0;
	struct job job;

	(void)holder_take(worker, "here", 1, &holder, &err);
	(void)store_insert(worker, 1, JOB_PY);
	(void)store_sql(
	    "CREATE SEQUENCE tries; CREATE FUNCTION once() RETURNS trigger "
	    "LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN IF "
	    "nextval('public.tries') = 1 THEN RETURN NULL; END IF; "
	    "RETURN NEW; END $$; CREATE TRIGGER once BEFORE UPDATE ON jobs "
	    "FOR EACH ROW EXECUTE FUNCTION once()");
	is_int(job_claim(worker, holder, &job, &err), 0, "looked for again");
	job_release(&job);
	is_int(job_claim(worker, holder, &job, &err), 1, "then there is none");
	(void)store_sql("DROP FUNCTION once CASCADE; DROP SEQUENCE tries; "
			"DELETE FROM jobs; DELETE FROM holders");
	db_close(worker);
}

/* ---- rights ---- */

/* A trigger with its owner's rights reads no name of a front's making. */
static void
test_definer(void)
{
	(void)store_sql(
	    "BEGIN; CREATE TEMP TABLE views (LIKE public.views); "
	    "INSERT INTO pg_temp.views (id, user_id, kind, created_ms, path, "
	    "page, share, text, input, version, timeit, keep, output, files, "
	    "package, source, bytes) SELECT i, 9, 'py', 1, '', 1, 0, '', '', "
	    "'', 0, 0, '', '', '', 0, 0 FROM generate_series(1, 501) AS i; "
	    "INSERT INTO public.views (user_id, kind, created_ms) "
	    "VALUES (9, 'py', 1)");
	is_int(store_sql("SELECT count(*) FROM pg_temp.views"), 501,
	    "the trigger touches no table of the session's own");
	(void)store_sql("ROLLBACK");
}

int
main(void)
{
	if (!store_is_postgres())
		skip_all("tests/store/postgres.t runs it on PostgreSQL");
	(void)store_make();
	test_kept_session();
	test_no_number();
	test_flush();
	test_claim_again();
	test_definer();
	return tap_done();
}
