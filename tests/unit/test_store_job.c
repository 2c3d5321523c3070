/* SPDX-License-Identifier: MIT */
/* A job's life: what may be inserted, and every change of state. */
#include "store.h"

static void
test_insert(struct db *db)
{
	struct err err = { 0 };
	struct job job = store_job(1, JOB_PY);
	struct job copy = store_job(2, JOB_PY);
	struct job_limits few = store_limits;

	is_int(job_insert(db, &job, &store_limits, &err), JOB_INSERTED,
	    "a job is inserted");
	ok(job.id > 0, "it has an id");
	copy.interaction_id = job.interaction_id;
	is_int(job_insert(db, &copy, &store_limits, &err), JOB_REPEATED,
	    "the same interaction again is repeated");
	copy.interaction_id = store_interaction++;
	copy.user_id = 1;
	is_int(job_insert(db, &copy, &store_limits, &err), JOB_RUNNING,
	    "a second job of the same user: already running");
	copy.kind = JOB_HEALTH;
	is_int(job_insert(db, &copy, &store_limits, &err), JOB_INSERTED,
	    "but health does not wait for it");
	copy.interaction_id = store_interaction++;
	is_int(job_insert(db, &copy, &store_limits, &err), JOB_INSERTED,
	    "nor for another health");
	copy.interaction_id = store_interaction++;
	few.user_rate = 3;
	is_int(job_insert(db, &copy, &few, &err), JOB_TOO_MANY,
	    "the fourth of three in a minute is too many");
	copy.user_id = 3;
	few.queue_max = 3;
	is_int(job_insert(db, &copy, &few, &err), JOB_QUEUE_FULL,
	    "the fourth in a queue of three finds it full");
	few.queue_max = 4;
	is_int(job_insert(db, &copy, &few, &err), JOB_INSERTED,
	    "and in a queue of four it does not");
	(void)store_sql("UPDATE jobs SET received_ms = received_ms - 60001");
	copy.interaction_id = store_interaction++;
	copy.user_id = 1;
	is_int(job_insert(db, &copy,
		   &(struct job_limits){ .queue_max = 100, .user_rate = 1 },
		   &err),
	    JOB_INSERTED, "a minute later nothing is too many");
	job_release(&job);
	job_release(&copy);
	(void)store_sql("DELETE FROM jobs");
}

/* A job that lists files runs beside a run; two of them run at a time. */
static void
test_beside(struct db *db)
{
	struct err err = { 0 };
	struct job job = store_job(1, JOB_LOOK);
	struct job found = { 0 };
	int64_t run = store_insert(db, 1, JOB_PY);

	is_int(job_insert(db, &job, &store_limits, &err), JOB_INSERTED,
	    "a look is inserted beside a run");
	job.kind = JOB_GET;
	job.interaction_id = store_interaction++;
	is_int(job_insert(db, &job, &store_limits, &err), JOB_INSERTED,
	    "and a file is fetched");
	job.interaction_id = store_interaction++;
	is_int(job_insert(db, &job, &store_limits, &err), JOB_RUNNING,
	    "the third has to wait");
	is_int(store_sql("SELECT sum(alone) FROM jobs"), 1,
	    "the run is what people wait for");
	(void)store_sql("UPDATE jobs SET state = 'started', claimed_by = 1 "
			"WHERE alone = 0");
	is_int(job_insert(db, &job, &store_limits, &err), JOB_RUNNING,
	    "also when those before it have begun");
	is_int(job_alone(db, 1, &found, &err), 0, "which is told");
	is_int(found.id, run, "of the run");
	is_int(found.received_ms, job.received_ms, "with its time");
	(void)store_sql("DELETE FROM jobs WHERE alone = 0");
	is_int(job_insert(db, &job, &store_limits, &err), JOB_INSERTED,
	    "until they are over");
	(void)store_sql("DELETE FROM jobs");
	(void)store_insert(db, 1, JOB_MESSAGE_RUN);
	job.interaction_id = store_interaction++;
	is_int(job_insert(db, &job, &store_limits, &err), JOB_INSERTED,
	    "the code of a message is a run, too");
	(void)store_sql("DELETE FROM jobs");
	for (int i = 0; i < 2; i++) {
		job.kind = i == 0 ? JOB_LOOK : JOB_GET;
		(void)store_insert(db, 1, i == 0 ? JOB_PIP : JOB_LOOK);
		job.interaction_id = store_interaction++;
		is_int(job_insert(db, &job, &store_limits, &err), JOB_RUNNING,
		    "beside what is no run there is none");
		(void)store_sql("DELETE FROM jobs");
	}
	job.interaction_id = store_interaction++;
	is_int(job_insert(db, &job, &store_limits, &err), JOB_INSERTED,
	    "without a run it is one like any other");
	is_int(store_sql("SELECT sum(alone) FROM jobs"), 1, "alone");
	job_release(&job);
	(void)store_sql("DELETE FROM jobs");
}

static void
test_every_column(struct db *db)
{
	struct err err = { 0 };
	struct job in = store_job(INT64_C(1) << 62, JOB_PUT);
	struct job out;

	in.answer = ANSWER_DEFERRED_UPDATE;
	in.locale = xstrdup("de");
	in.path = xstrdup("a/\xc3\xbc");
	in.page = 7;
	in.share = in.recursive = in.has_text = true;
	in.attachment_url = xstrdup("https://cdn.example/1");
	in.attachment_name = xstrdup("n.txt");
	in.attachment_size = 12345;
	in.view_id = 9;
	is_int(job_insert(db, &in, &store_limits, &err), JOB_INSERTED,
	    "a job with everything");
	is_int(job_claim(db, 4, &out, &err), 0, "is claimed");
	is_int(out.id, in.id, "id");
	is_int(out.interaction_id, in.interaction_id, "interaction_id");
	is_int(out.application_id, 77, "application_id");
	is_int(out.user_id, INT64_C(1) << 62, "user_id");
	is_int(out.kind, JOB_PUT, "kind");
	ok(!out.lost, "not lost");
	is_int(store_sql("SELECT count(*) FROM jobs WHERE state = 'claimed'"),
	    1, "state");
	is_int(out.answer, ANSWER_DEFERRED_UPDATE, "answer");
	is_str(out.token, "a-token", "token");
	is_str(out.locale, "de", "locale");
	is_int(out.received_ms, in.received_ms, "received_ms");
	is_int(out.attachment_limit, 10 << 20, "attachment_limit");
	is_int(out.may_attach, true, "may_attach");
	is_str(out.path, "a/\xc3\xbc", "path");
	is_str(out.text, "print(1)", "text");
	is_str(out.input, "input", "input");
	is_int(out.page, 7, "page");
	ok(out.share && out.recursive && out.has_text, "flags");
	is_str(out.attachment_url, "https://cdn.example/1", "attachment_url");
	is_str(out.attachment_name, "n.txt", "attachment_name");
	is_int(out.attachment_size, 12345, "attachment_size");
	is_int(out.view_id, 9, "view_id");
	is_int(store_sql("SELECT claimed_by FROM jobs"), 4, "claimed_by");
	ok(out.body == NULL, "no body yet");
	is_int(store_sql("SELECT outcome = '' FROM jobs"), 1, "no outcome yet");
	job_release(&in);
	job_release(&out);
	(void)store_sql("DELETE FROM jobs");
}

static void
test_life(struct db *db)
{
	struct err err = { 0 };
	struct job job;
	int64_t first = store_insert(db, 1, JOB_PY);
	int64_t second = store_insert(db, 2, JOB_LOOK);

	is_int(job_claim(db, 0, &job, &err), 0, "claim");
	is_int(job.id, first, "the oldest comes first");
	job_release(&job);
	is_int(job_finish(db, second, 0, "{}", "x", -1, &err), 1,
	    "a queued job cannot be finished");
	is_int(job_start(db, second, 0, &err), 1, "nor started");
	is_int(job_delivered(db, first, &err), 1,
	    "a claimed job is not delivered");
	is_int(job_start(db, first, 1, &err), 1,
	    "another slot's job is not started");
	is_int(job_start(db, first, 0, &err), 0, "started by its own slot");
	is_int(job_start(db, first, 0, &err), 1, "but only once");
	is_int(job_finish(db, first, 1, "{}", "x", -1, &err), 1,
	    "another slot's job is not finished");
	is_int(job_finish(db, first, 0, "{\"a\":1}", "exit 0", -1, &err), 0,
	    "finished");
	is_int(job_finish(db, first, 0, "{}", "exit 1", -1, &err), 1,
	    "but only once");
	is_int(job_next_untold(db, 0, 0, &job, &err), 0,
	    "it is still to be told");
	is_str(job.body, "{\"a\":1}", "with its body");
	is_int(
	    store_sql(
		"SELECT outcome = 'exit 0' FROM jobs WHERE state = 'finished'"),
	    1, "and outcome");
	job_release(&job);
	is_int(job_next_untold(db, 1, 0, &job, &err), 1, "not by another slot");
	is_int(job_delivered(db, first, &err), 0, "delivered");
	is_int(job_delivered(db, first, &err), 1, "but only once");
	is_int(job_undeliverable(db, first, "late", &err), 1,
	    "and not given up afterwards");
	is_int(job_next_untold(db, 0, 0, &job, &err), 1,
	    "nothing is left to tell");
	is_int(store_sql("SELECT token = '' AND text = '' AND input = '' AND "
			 "body IS NULL AND outcome = 'exit 0' FROM jobs "
			 "WHERE state = 'delivered'"),
	    1, "token, texts and body are forgotten, the outcome is not");
	is_int(job_claim(db, 0, &job, &err), 0, "the second is claimed");
	is_int(job.id, second, "it is the second");
	job_release(&job);
	is_int(job_finish(db, second, 0, "{}", "refused", -1, &err), 0,
	    "a claimed job may be finished without being started");
	is_int(job_undeliverable(db, second, "gone", &err), 0, "given up");
	is_int(store_sql("SELECT outcome = 'gone' AND token = '' FROM jobs "
			 "WHERE state = 'undeliverable'"),
	    1, "it says why");
	is_int(job_claim(db, 0, &job, &err), 1, "the queue is empty");
	job_release(&job);
	(void)store_sql("DELETE FROM jobs");
}

static void
test_given_up(struct db *db)
{
	struct err err = { 0 };
	struct job job;
	int64_t id = store_insert(db, 1, JOB_PY);

	is_int(job_undeliverable(db, id, "late", &err), 1,
	    "a queued job is not given up");
	is_int(job_claim(db, 0, &job, &err), 0, "claim");
	job_release(&job);
	is_int(job_undeliverable(db, id, "late", &err), 0,
	    "a claimed one may be");
	ok(store_insert(db, 1, JOB_PY) > 0, "its user may go on");
	is_int(job_claim(db, 0, &job, &err), 0, "claim");
	is_int(job_start(db, job.id, 0, &err), 0, "start");
	is_int(job_undeliverable(db, job.id, "late", &err), 0,
	    "a started one too");
	job_release(&job);
	(void)store_sql("DELETE FROM jobs");
}

static void
test_recover(struct db *db)
{
	struct err err = { 0 };
	struct job job;
	int64_t slots[8];
	int64_t ids[4];

	for (int i = 0; i < 4; i++)
		ids[i] = store_insert(db, 10 + i, JOB_PY);
	for (int i = 0; i < 4; i++) {
		(void)job_claim(db, i == 3 ? 5 : 2, &job, &err);
		job_release(&job);
	}
	(void)job_start(db, ids[1], 2, &err);
	(void)job_start(db, ids[2], 2, &err);
	(void)job_finish(db, ids[2], 2, "{}", "exit 0", -1, &err);
	is_int(job_slots(db, slots, 8, &err), 2, "two slots hold jobs");
	ok(slots[0] == 2 && slots[1] == 5, "in order");
	is_int(job_slots(db, slots, 1, &err), 1, "no more than there is room");
	is_int(job_recover(db, 2, &err), 2, "two jobs are recovered");
	is_int(job_recover(db, 2, &err), 0, "and not again");
	is_int(job_next_untold(db, 2, ids[1], &job, &err), 0,
	    "one can be passed over");
	is_int(job.id, ids[2], "for the next one");
	job_release(&job);
	is_int(job_next_untold(db, 2, 0, &job, &err), 0, "one is to be told");
	is_int(job.id, ids[1], "the one that ran");
	ok(job.lost, "it is lost");
	is_int(store_sql("SELECT count(*) FROM jobs "
			 "WHERE outcome = 'interrupted'"),
	    1, "interrupted");
	is_int(job_start(db, job.id, 2, &err), 1, "it is never run again");
	is_int(job_delivered(db, job.id, &err), 1, "it must be told first");
	is_int(job_finish(db, job.id, 2, "{}", "interrupted", -1, &err), 0,
	    "telling it: finished");
	is_int(job_delivered(db, job.id, &err), 0, "and delivered");
	job_release(&job);
	is_int(job_next_untold(db, 2, 0, &job, &err), 0,
	    "then the finished one");
	is_int(job.id, ids[2], "with the body that it had");
	is_int(job_undeliverable(db, job.id, "late", &err), 0, "given up");
	job_release(&job);
	is_int(job_claim(db, 6, &job, &err), 0, "the claimed one is queued");
	is_int(job.id, ids[0], "it is the first one");
	job_release(&job);
	(void)store_sql("DELETE FROM jobs");
}

static void
test_lost_frees_user(struct db *db)
{
	struct err err = { 0 };
	struct job job;
	int64_t id = store_insert(db, 1, JOB_PY);

	(void)job_claim(db, 0, &job, &err);
	job_release(&job);
	(void)job_start(db, id, 0, &err);
	(void)job_recover(db, 0, &err);
	ok(store_insert(db, 1, JOB_PY) > 0,
	    "a lost job does not keep its user from going on");
	is_int(job_undeliverable(db, id, "late", &err), 0,
	    "and may be given up");
	(void)store_sql("DELETE FROM jobs");
}

static void
test_count_and_prune(struct db *db)
{
	struct err err = { 0 };
	static int64_t kinds[JOB_UNKNOWN + 1][JOB_STATES];
	struct job_counts counts;
	struct job job;
	int64_t id = 0;

	is_int(job_count(db, &counts, &err), 0, "count nothing");
	is_int(counts.oldest_ms, 0, "nothing waits");
	for (int i = 0; i < 6; i++)
		id = store_insert(db, 20 + i, JOB_PY);
	for (int i = 0; i < 4; i++) {
		(void)job_claim(db, 0, &job, &err);
		if (i > 0)
			(void)job_start(db, job.id, 0, &err);
		if (i > 1)
			(void)job_finish(db, job.id, 0, "{}", "exit 0", -1,
			    &err);
		if (i > 2)
			(void)job_delivered(db, job.id, &err);
		job_release(&job);
	}
	(void)store_sql("UPDATE jobs SET received_ms = received_ms - 5000");
	is_int(job_count(db, &counts, &err), 0, "count");
	is_int(counts.queued, 2, "queued");
	is_int(counts.running, 2, "running");
	is_int(counts.untold, 1, "untold");
	ok(counts.oldest_ms >= 5000 && counts.oldest_ms < 60000,
	    "age of the oldest");
	(void)store_sql("UPDATE jobs SET kind = 'pip' WHERE state = 'started'");
	is_int(job_count_kinds(db, kinds, &err), 0, "count by kind");
	ok(kinds[JOB_PY][0] == 2 && kinds[JOB_PY][1] == 1 &&
		kinds[JOB_PIP][2] == 1 && kinds[JOB_PY][3] == 1 &&
		kinds[JOB_PY][2] == 0,
	    "each kind in each state");
	is_int(store_prune(db, STATEMENT_JOB_PRUNE, 60000, 10, &err), 0,
	    "nothing is old");
	is_int(store_prune(db, STATEMENT_JOB_PRUNE, 1000, 10, &err), 1,
	    "of the old ones only what is over is pruned");
	is_int(store_sql("SELECT count(*) FROM jobs"), 5, "the others stay");
	(void)store_sql("UPDATE jobs SET state = 'delivered', token = '', "
			"text = '', input = '', body = NULL");
	is_int(store_prune(db, STATEMENT_JOB_PRUNE, 1000, 2, &err), 2,
	    "no more than `most`");
	is_int(store_prune(db, STATEMENT_JOB_PRUNE, 1000, 10, &err), 3,
	    "then the rest");
	ok(store_insert(db, 1, JOB_PY) > id,
	    "the id of a pruned job is never used again");
	(void)store_sql("DELETE FROM jobs");
}

/* Of a newer program's, between its update and the worker's. */
static void
test_unknown_kind(struct db *db)
{
	struct err err = { 0 };
	struct job job;
	int64_t id = store_insert(db, 1, JOB_PY);

	(void)store_sql("UPDATE jobs SET kind = 'newer'");
	is_int(job_claim(db, 4, &job, &err), 0, "an unknown kind is claimed");
	is_int(job.kind, JOB_UNKNOWN, "and is unknown");
	job_release(&job);
	is_int(job_finish(db, id, 4, "{}", "unknown kind", -1, &err), 0,
	    "it is finished");
	is_int(job_next_untold(db, 4, 0, &job, &err), 0, "it is to be told");
	is_int(job.kind, JOB_UNKNOWN, "and unknown still");
	job_release(&job);
	(void)store_sql("DELETE FROM jobs");
}

int
main(void)
{
	struct db *db;

	(void)store_make();
	db = store_open(DB_WORKER);
	is_str(commands[JOB_WRITE_EDIT].name, "write-edit", "kind name");
	is_str(commands[JOB_UNKNOWN].name, "unknown", "the name of no kind");
	is_int(job_kind_find("pip"), JOB_PIP, "a kind is found by its name");
	is_int(job_kind_find("ping"), JOB_UNKNOWN, "one that is not there");
	test_insert(db);
	test_beside(db);
	test_every_column(db);
	test_unknown_kind(db);
	test_life(db);
	test_given_up(db);
	test_recover(db);
	test_lost_frees_user(db);
	test_count_and_prune(db);
	db_close(db);
	return tap_done();
}
