/* SPDX-License-Identifier: MIT */
/* Hosts that share a database: who they are, what is done where, and what
 * becomes of it when one is lost. */
#include <poll.h>
#include <sys/wait.h>

#include "sandbox/store/driver.h"
#include "sandbox/store/holder.h"
#include "sandbox/store/names.h"
#include "sandbox/store/node.h"
#include "sandbox/store/sandbox.h"
#include "sandbox/store/session.h"

#include "store.h"

static const char *const ids[] = { "00000000000000000000000000000001",
	"00000000000000000000000000000002", "00000000000000000000000000000003",
	"0000000000000000000000000000000a" };

/* A worker of a node, with a number of its own. */
static struct db *
worker_of(const char *name, const char *instance, int64_t *holder)
{
	struct err err = { 0 };
	struct db *db = store_open(DB_WORKER);

	if (node_join(db, name, instance, &err) != 0 ||
	    holder_take(db, name, 0, holder, &err) != 0)
		note("%s", err.text);
	return db;
}

static void
forget_all(void)
{
	(void)store_sql("DELETE FROM jobs; DELETE FROM sandboxes; "
			"DELETE FROM names; DELETE FROM holders; "
			"DELETE FROM nodes; DELETE FROM leftovers");
}

/* Nobody waits any longer for who is away. */
static void
long_ago(void)
{
	(void)store_sql("UPDATE nodes SET left_ms = 1 WHERE left_ms <> 0");
}

/* The node's session may end a moment after its socket. */
static int
sweep_after(struct db *db, struct node_loss *loss)
{
	struct err err = { 0 };
	int result = 1;

	for (int i = 0; i < 200 && result == 1; i++) {
		result = node_sweep(db, loss, &err);
		long_ago();
		if (result == 1)
			(void)poll(NULL, 0, 20);
	}
	if (result < 0)
		note("%s", err.text);
	return result;
}

/* ---- on SQLite there is nothing of it ---- */

static void
test_one_host(void)
{
	struct err err = { 0 };
	struct db *db = store_open(DB_WORKER);
	struct node_loss loss;
	struct job job;

	is_int(node_join(db, "one", ids[0], &err), 0, "join");
	is_int(node_number(db), 0, "its number is 0");
	is_int(node_find(db, "one", ids[0], &err), 0, "found");
	is_int(node_sweep(db, &loss, &err), 1, "nobody is lost");
	(void)store_insert(db, 1, JOB_PY);
	is_int(job_claim(db, 3, &job, &err), 0, "claimed as ever");
	job_release(&job);
	is_int(store_sql("SELECT count(*) FROM nodes"), 0, "no row of it");
	is_int(store_sql("SELECT sum(home) FROM jobs"), 0, "home is 0");
	db_close(db);
}

/* ---- who they are ---- */

static void
test_join(void)
{
	struct err err = { 0 };
	int64_t holder;
	struct db *front = store_open(DB_FRONT);
	struct db *a;
	struct db *again;
	struct db *b;
	struct db *other;

	(void)store_sql("INSERT INTO sandboxes (id, user_id, created_at, "
			"used_at, expires_at) VALUES ('0000000000000000000000"
			"0000000abc', 9, 1, 1, 9999999999)");
	is_int(node_find(front, "one", ids[0], &err), 1, "not joined yet");
	is_int(node_number(front), 0, "no number");
	a = worker_of("one", ids[0], &holder);
	ok(node_number(a) > 0, "a number");
	again = worker_of("one", ids[0], &holder);
	is_int(node_number(again), node_number(a), "of all its workers");
	is_int(node_find(front, "one", ids[0], &err), 0, "its front finds it");
	is_int(node_number(front), node_number(a), "the same");
	is_int(store_sql("SELECT home FROM sandboxes"), node_number(a),
	    "sandboxes from before there were homes are its");
	b = worker_of("two", ids[1], &holder);
	ok(node_number(b) > node_number(a), "another one's is another one");

	/* two hosts of one name */
	other = store_open(DB_WORKER);
	is_int(node_join(other, "one", ids[2], &err), -1, "the name is taken");
	is_int(err.code, ERR_CONFIG, "which the operator has to mend");
	ok(strstr(err.text, "IL_NODE") != NULL, err.text);
	db_close(a);
	is_int(node_join(other, "one", ids[2], &err), -1,
	    "one of its workers is there still");
	is_int(err.code, ERR_CONFIG, "as before");
	db_close(again);
	for (int i = 0; i < 200 && err.code != ERR_BUSY; i++) {
		(void)poll(NULL, 0, 20);
		is_int(node_join(other, "one", ids[2], &err), -1,
		    "it may come back");
	}
	is_int(err.code, ERR_BUSY, "within a minute");
	long_ago();
	is_int(node_join(other, "one", ids[2], &err), 0, "it was replaced");
	ok(node_number(other) > node_number(b), "by a new one");
	/* the one before comes back */
	a = store_open(DB_WORKER);
	is_int(node_join(a, "one", ids[0], &err), -1, "and is the second now");
	is_int(err.code, ERR_CONFIG, "of that name");
	db_close(a);
	db_close(b);
	db_close(other);
	db_close(front);
	forget_all();
}

/* A connection that is made again belongs to the same node. */
static void
test_cut(void)
{
	struct err err = { 0 };
	int64_t holder;
	struct db *a = worker_of("one", ids[0], &holder);
	int64_t number = node_number(a);
	struct db *other = store_open(DB_WORKER);

	(void)store_cut("il-worker");
	(void)store_sql("UPDATE nodes SET left_ms = 5, lost_ms = 6");
	is_int(job_peek(a, &err), 1, "it comes back");
	is_int(node_number(a), number, "with its number");
	is_int(store_sql("SELECT left_ms + lost_ms FROM nodes"), 0, "alive");
	is_int(node_join(other, "one", ids[1], &err), -1, "and has the lock");
	db_close(other);
	db_close(a);
	forget_all();
}

/* ---- what is done where ---- */

static void
test_home(void)
{
	struct err err = { 0 };
	int64_t holder_a;
	int64_t holder_b;
	struct db *a = worker_of("one", ids[0], &holder_a);
	struct db *b = worker_of("two", ids[1], &holder_b);
	struct db *front = store_open(DB_FRONT);
	struct db *lonely = store_open(DB_FRONT);
	struct sandbox sandbox;
	bool created;
	struct job job = store_job(1, JOB_PY);

	(void)node_find(front, "one", ids[0], &err);
	job.held_by = 1;
	is_int(job_insert(front, &job, &store_limits, &err), JOB_INSERTED,
	    "of one without a sandbox");
	is_int(job.home, node_number(a), "where the front is");
	is_int(job.held_by, 1, "where an answer is waited for");
	job_release(&job);
	is_int(job_peek(b, &err), 1, "not to be seen elsewhere");
	is_int(job_claim(b, holder_b, &job, &err), 1, "nor claimed");

	is_int(sandbox_create(b, 2, 3600, &sandbox, &created, &err), 0,
	    "a sandbox elsewhere");
	job = store_job(2, JOB_PY);
	job.held_by = 1;
	is_int(job_insert(front, &job, &store_limits, &err), JOB_INSERTED,
	    "of its owner");
	is_int(job.home, node_number(b), "where that is");
	is_int(job.held_by, -1, "no answer from there is waited for");
	job_release(&job);
	is_int(job_claim(b, holder_b, &job, &err), 0, "claimed there");
	is_int(job.user_id, 2, "though an older one waits elsewhere");
	job_release(&job);
	is_int(job_claim(a, holder_a, &job, &err), 0, "which is claimed");
	is_int(job.user_id, 1, "at home");
	job_release(&job);
	is_int(job_claim(a, holder_a, &job, &err), 1, "and no more");

	/* a front of a host without a worker */
	job = store_job(3, JOB_PY);
	is_int(job_insert(lonely, &job, &store_limits, &err), JOB_INSERTED,
	    "nowhere at home");
	ok(job.home == node_number(a) || job.home == node_number(b),
	    "goes to one that lives");
	job_release(&job);

	/* expiry, at home alone */
	(void)store_sql("DELETE FROM jobs; UPDATE sandboxes SET expires_at "
			"= 5");
	is_int(sandbox_next_expiry(a, &err), -1, "nothing expires here");
	is_int(sandbox_take_expired(a, &sandbox, &err), 1, "nor is it taken");
	is_int(sandbox_take_expired(b, &sandbox, &err), 0, "but at home");
	(void)store_sql("UPDATE sandboxes SET taken_at = 0");
	is_int(sandbox_take_expired(a, &sandbox, &err), 1, "left: not here");
	is_int(sandbox_retry(a, &err), 0, "nor tried again");
	is_int(sandbox_take_expired(b, &sandbox, &err), 0, "but at home");
	db_close(a);
	db_close(b);
	db_close(front);
	db_close(lonely);
	forget_all();
}

/* Only who is meant is woken. */
static void
test_heard(void)
{
	struct err err = { 0 };
	int64_t holder;
	struct db *a = worker_of("one", ids[0], &holder);
	struct db *b = worker_of("two", ids[1], &holder);
	struct db *front = store_open(DB_FRONT);
	struct pollfd at = { .events = POLLIN };
	int other = -1;

	is_int(holder_listen(a, &err), 0, "one listens");
	is_int(holder_listen(b, &err), 0, "two listens");
	(void)holder_heard(a, &other);
	(void)holder_heard(b, &at.fd);
	holder_notify(front, node_number(b));
	is_int(poll(&at, 1, 10000), 1, "two has word");
	ok(holder_heard(b, &at.fd), "heard");
	ok(!holder_heard(a, &other), "one has not");
	holder_cancel(front, node_number(b), 77);
	is_int(poll(&at, 1, 10000), 1, "of a job to be cancelled");
	ok(!holder_heard(b, &at.fd), "which is no new one");
	is_int(holder_heard_cancel(b), 77, "which one it is");
	is_int(holder_heard_cancel(b), 0, "once");
	is_int(holder_heard_cancel(a), 0, "not elsewhere");
	db_close(a);
	db_close(b);
	db_close(front);
	forget_all();
}

/* ---- one is lost ---- */

/* A job of a user with a sandbox at home. */
static int64_t
job_at(struct db *db, int64_t user)
{
	struct err err = { 0 };
	struct sandbox sandbox;
	bool created;

	if (sandbox_create(db, user, 3600, &sandbox, &created, &err) != 0)
		note("%s", err.text);
	return store_insert(db, user, JOB_PY);
}

static int64_t
claim(struct db *db, int64_t holder)
{
	struct err err = { 0 };
	struct job job;
	int64_t id = 0;

	if (job_claim(db, holder, &job, &err) == 0)
		id = job.id;
	job_release(&job);
	return id;
}

static int64_t
count_state(const char *state, int64_t home)
{
	char sql[200];

	(void)snprintf(sql, sizeof(sql),
	    "SELECT count(*) FROM jobs WHERE state = '%s' AND home = %lld",
	    state, (long long)home);
	return store_sql(sql);
}

/* How many are due, and gone then. */
static int
drop_leftovers(struct db *db)
{
	struct err err = { 0 };
	char left[LEFTOVER_SIZE];
	int count = 0;

	while (node_leftover(db, 60, left, &err) == 0 &&
	    node_leftover_gone(db, left, &err) == 0)
		count++;
	return count;
}

static void
test_lost(void)
{
	struct err err = { 0 };
	int64_t holder_a;
	int64_t holder_b;
	struct db *a = worker_of("one", ids[0], &holder_a);
	struct db *b = worker_of("two", ids[1], &holder_b);
	int64_t number_a = node_number(a);
	int64_t number_b = node_number(b);
	int64_t finished = job_at(a, 1);
	int64_t started;
	int64_t claimed;
	struct sandbox before;
	struct sandbox after;
	struct session session = { .started_at = 5 };
	struct node_loss loss = { 0 };
	struct db *a_front = store_open(DB_WORKER);
	struct job job;

	is_int(claim(a, holder_a), finished, "one job is claimed");
	(void)job_start(a, finished, holder_a, &err);
	is_int(job_finish(a, finished, holder_a, "{}", "exit 0", -1, &err), 0,
	    "and finished");
	started = job_at(a, 2);
	(void)claim(a, holder_a);
	is_int(job_start(a, started, holder_a, &err), 0, "one is started");
	claimed = job_at(a, 3);
	is_int(claim(a, holder_a), claimed, "one is claimed");
	(void)job_at(a, 4); /* queued */
	(void)store_sql("UPDATE sandboxes SET cwd = 'sub' WHERE user_id = 4");
	(void)sandbox_find(a, 4, &before, &err);
	(void)session_put(a, before.id, &session, &err);
	(void)store_sql("INSERT INTO names (sandbox_id, kind, name) SELECT id, "
			"'file', 'f' FROM sandboxes");
	/* of users without a job: one goes, one has expired */
	(void)store_sql("INSERT INTO sandboxes (id, user_id, created_at, "
			"used_at, expires_at, state, home) SELECT "
			"lpad(CAST(n AS text), 32, 'f'), n, 1, 1, 1, CASE n "
			"WHEN 5 THEN 'removing' ELSE 'expiring' END, home FROM "
			"sandboxes, generate_series(5, 6) AS n WHERE user_id "
			"= 4");

	is_int(node_sweep(b, &loss, &err), 1, "it lives");
	is_int(store_sql("SELECT sum(left_ms) FROM nodes"), 0,
	    "which nobody doubts");
	db_close(a);
	while (store_sql("SELECT sum(left_ms) FROM nodes") == 0)
		is_int(node_sweep(b, &loss, &err), 1, "it went just now");
	is_int(node_sweep(b, &loss, &err), 1, "not yet");
	is_int(count_state("queued", number_a), 1, "nothing has moved");
	(void)store_sql("UPDATE nodes SET left_ms = left_ms - 3600000 WHERE "
			"left_ms <> 0");
	is_int(node_sweep(b, &loss, &err), 1,
	    "nor because the database's clock has jumped");
	long_ago();
	is_int(node_sweep(b, &loss, &err), 0, "then it is lost");
	is_str(loss.name, "one", "by name");
	is_int(loss.sandboxes, 6, "sandboxes");
	is_int(loss.jobs, 3, "what its workers had");
	is_int(node_sweep(b, &loss, &err), 1, "once");

	is_int(job_finish(b, started, holder_a, "{}", "exit 0", -1, &err), 1,
	    "a late finish matches no row");
	is_int(job_start(b, claimed, holder_a, &err), 1, "nor does a start");
	is_int(job_recover(b, holder_b, &err), 2, "two are recovered");
	is_int(count_state("queued", number_b), 2, "queued at the new home");
	is_int(store_sql("SELECT count(*) FROM jobs WHERE state = 'lost'"), 1,
	    "started: to be told as interrupted");
	is_int(job_next_untold(b, holder_b, 0, &job, &err), 0, "to be told");
	is_int(job.id, finished, "what was finished");
	job_release(&job);

	is_int(sandbox_find(b, 4, &after, &err), 0, "a sandbox that moved");
	ok(strcmp(after.id, before.id) != 0, "has a new id");
	is_str(after.moved_from, before.id, "knows the one before");
	is_str(after.moved_host, "one", "and the host");
	is_str(after.cwd, "", "is at its top");
	is_int(store_sql("SELECT count(*) FROM sandboxes WHERE home = 2 OR "
			 "state = 'active'"),
	    4, "at the other one");
	is_int(session_find(b, after.id, &session, &err), 0, "its session");
	is_int(session.started_at, 5, "came along");
	is_int(store_sql("SELECT count(*) FROM names"), 0, "names did not");
	is_int(node_leftovers(b, &err), 0, "the other one has nothing left");
	for (int i = 0; i < 2; i++) {
		is_int(sandbox_take_expired(b, &after, &err), 0,
		    "what was going is swept here, at once");
		is_int((int64_t)strlen(after.moved_from), SANDBOX_ID_LEN,
		    "with what it was a snapshot of");
		is_int(sandbox_gone(b, after.id, &err), 0, "and goes");
	}
	is_int(sandbox_take_expired(b, &after, &err), 1, "no more");
	(void)sandbox_find(b, 4, &after, &err);
	is_int(store_sql("SELECT count(*) FROM sandboxes WHERE state = "
			 "'expired' AND user_id = 6"),
	    1, "whose owner is told that it has expired");

	is_int(sandbox_settled(a_front, after.id, 66, &err), 1,
	    "files that came to another host are not there");
	is_int(sandbox_settled(b, after.id, 77, &err), 0, "files are there");
	is_int(sandbox_told(b, after.id, &err), 0, "its owner knows");
	(void)sandbox_find(b, 4, &after, &err);
	is_str(after.moved_from, "", "nothing more to bring");
	is_str(after.moved_host, "", "nor to tell");
	is_int(after.files_at, 77, "as of when they are");

	/* it comes back */
	a = worker_of("one", ids[0], &holder_a);
	is_int(node_number(a), number_a, "back, with its number");
	is_int(sandbox_set_cwd(a, before.id, "x", &err), 1,
	    "what it had is no row any more");
	is_int(claim(a, holder_a), 0, "nothing is its");
	is_int(node_leftovers(a, &err), 6, "but folders that no row names");
	is_int(drop_leftovers(a), 2, "those that were going go");
	(void)store_sql("UPDATE leftovers SET left_at = left_at - 61");
	is_int(drop_leftovers(a), 1, "those that are old go");
	is_int(node_leftovers(a, &err), 3,
	    "but whose files are still to be brought from their snapshot");
	(void)store_sql("UPDATE sandboxes SET moved_from = ''; UPDATE "
			"leftovers SET left_at = left_at + 99");
	is_int(drop_leftovers(a), 0, "the others are kept");
	is_int(node_leftovers_unwanted(b, 3, &err), 0, "one deletes all");
	is_int(drop_leftovers(a), 1, "which goes");
	(void)store_sql("UPDATE leftovers SET left_at = left_at - 199");
	is_int(drop_leftovers(a), 2, "all of them");
	is_int(store_insert(a, 8, JOB_PY) > 0, 1, "a new user");
	ok(claim(a, holder_a) != 0, "is served there again");
	db_close(a_front);
	db_close(a);
	db_close(b);
	forget_all();
}

/* Moved twice before its owner came: the first id has the files. */
static void
test_twice(void)
{
	struct err err = { 0 };
	int64_t holder;
	struct db *a = worker_of("one", ids[0], &holder);
	struct db *b = worker_of("two", ids[1], &holder);
	struct db *c = worker_of("three", ids[3], &holder);
	struct node_loss loss = { 0 };
	struct sandbox first;
	struct sandbox now;
	bool created;

	for (int i = 1; i <= 60; i++)
		(void)sandbox_create(a, i, 3600, &first, &created, &err);
	(void)sandbox_find(a, 1, &first, &err);
	db_close(a);
	is_int(sweep_after(c, &loss), 0, "one is lost");
	is_int(loss.sandboxes, 60, "with all that it had");
	ok(store_sql("SELECT min(n) FROM (SELECT count(*) AS n FROM sandboxes "
		     "GROUP BY home) AS homes") >= 10,
	    "spread over the others");
	db_close(b);
	is_int(sweep_after(c, &loss), 0, "two is lost");
	(void)sandbox_find(c, 1, &now, &err);
	is_str(now.moved_from, first.id, "the first id is kept");
	is_int(store_sql("SELECT count(DISTINCT home) FROM sandboxes"), 1,
	    "all are at the one that is left");
	db_close(c);
	forget_all();
}

/* A worker's statement has five seconds, and its answer six. */
static void
test_many(void)
{
	int64_t holder;
	struct db *a = worker_of("one", ids[0], &holder);
	struct db *b = worker_of("two", ids[1], &holder);
	struct node_loss loss = { 0 };

	(void)job_at(a, 1);
	(void)
	    store_sql("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql "
		      "AS $$ BEGIN PERFORM pg_sleep(6.5); RETURN NEW; END $$; "
		      "CREATE TRIGGER slow BEFORE UPDATE ON sandboxes FOR EACH "
		      "ROW EXECUTE FUNCTION slow()");
	db_close(a);
	is_int(sweep_after(b, &loss), 0, "so many that moving them takes long");
	is_int(loss.sandboxes, 1, "are moved");
	(void)store_sql("DROP FUNCTION slow CASCADE");
	db_close(b);
	forget_all();
}

/* Two jobs of one user, who had none, make it in the same moment. */
static void
test_first(void)
{
	struct err err = { 0 };
	int64_t holder;
	struct db *a = worker_of("one", ids[0], &holder);
	struct sandbox sandbox;
	bool created = true;
	int ready[2];
	char byte;
	pid_t child;

	is_int(pipe(ready), 0, "a pipe");
	child = fork();
	if (child == 0) {
		(void)store_sql("BEGIN; INSERT INTO sandboxes (id, user_id, "
				"created_at, used_at, expires_at, home) VALUES "
				"('000000000000000000000000000000ff', 1, 1, 1, "
				"9999999999, 99)");
		(void)!write(ready[1], "", 1);
		while (store_sql("SELECT count(*) FROM pg_locks WHERE NOT "
				 "granted") == 0)
			(void)poll(NULL, 0, 10);
		(void)store_sql("COMMIT");
		_exit(0);
	}
	is_int(read(ready[0], &byte, 1), 1, "one is being made elsewhere");
	is_int(sandbox_create(a, 1, 60, &sandbox, &created, &err), 0,
	    "that one is taken");
	ok(!created, "and none is made");
	is_int(sandbox.home, 99, "it is at home there");
	(void)waitpid(child, NULL, 0);
	db_close(a);
	forget_all();
}

/* Who read where a sandbox was before it moved. */
static void
test_stale(void)
{
	struct err err = { 0 };
	int64_t holder_a;
	int64_t holder_b;
	struct db *a = worker_of("one", ids[0], &holder_a);
	struct db *b = worker_of("two", ids[1], &holder_b);
	struct node_loss loss = { 0 };
	char sql[200];

	(void)job_at(b, 1);
	(void)snprintf(sql, sizeof(sql), "UPDATE jobs SET home = %lld",
	    (long long)node_number(a));
	(void)store_sql(sql);
	is_int(claim(a, holder_a), 0, "not where the sandbox is not");
	is_int(node_sweep(a, &loss, &err), 1, "a round");
	ok(claim(b, holder_b) != 0, "sends it there");
	(void)store_sql("DELETE FROM jobs");
	(void)job_at(b, 1);
	(void)store_sql("UPDATE jobs SET home = 12345");
	is_int(node_sweep(a, &loss, &err), 1, "of a node that is none");
	ok(claim(b, holder_b) != 0, "likewise");
	db_close(a);
	db_close(b);
	forget_all();
}

/* Whose clock goes ten times as fast (postgres.t) sees a minute go by. */
static void
test_minute(void)
{
	struct err err = { 0 };
	int64_t holder;
	struct db *a = worker_of("one", ids[0], &holder);
	struct db *b = worker_of("two", ids[1], &holder);
	struct node_loss loss = { 0 };
	int64_t begun_ms = clock_monotonic_ms();
	int result = 1;

	(void)job_at(a, 1);
	db_close(a);
	while (result == 1 && clock_monotonic_ms() < begun_ms + 600000) {
		result = node_sweep(b, &loss, &err);
		if (result == 1)
			(void)poll(NULL, 0, 1000);
	}
	is_int(result, 0, "one is lost");
	is_str(loss.name, "one", "who it is");
	ok(clock_monotonic_ms() - begun_ms >= 60000, "not before its minute");
	db_close(b);
	forget_all();
}

int
main(void)
{
	(void)store_make();
	if (getenv("TEST_FAST") != NULL) {
		test_minute();
		return tap_done();
	}
	if (!store_is_postgres()) {
		test_one_host();
		return tap_done();
	}
	test_join();
	test_cut();
	test_home();
	test_heard();
	test_lost();
	test_twice();
	test_stale();
	test_first();
	if (getenv("FAKETIME") == NULL)
		test_many();
	return tap_done();
}
