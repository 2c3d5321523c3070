/* SPDX-License-Identifier: MIT */
/* A first response from another host, which the database carries. */
#include <poll.h>

#include "sandbox/store/holder.h"
#include "sandbox/store/node.h"
#include "sandbox/store/sandbox.h"

#include "store.h"

static const char *const ids[] = { "00000000000000000000000000000001",
	"00000000000000000000000000000002" };

/* A worker of a node. */
static struct db *
worker_of(const char *name, const char *instance)
{
	struct err err = { 0 };
	struct db *db = store_open(DB_WORKER);

	if (node_join(db, name, instance, &err) != 0)
		note("%s", err.text);
	return db;
}

/* Wait for the next response; NULL: none came. */
static const char *
next_response(struct db *front, int64_t *job)
{
	struct pollfd at = { .events = POLLIN };
	const char *json = NULL;

	*job = holder_response(front, &at.fd, &json);
	while (*job == 0 && poll(&at, 1, 10000) > 0)
		*job = holder_response(front, &at.fd, &json);
	return *job != 0 ? json : NULL;
}

static int
insert_editor(struct db *front, int64_t user, struct job *job)
{
	struct err err = { 0 };

	*job = store_job(user, JOB_WRITE_EDIT);
	job->answer = ANSWER_EDITOR;
	job->held_by = 1;
	return (int)job_insert(front, job, &store_limits, &err);
}

static void
test_editor(void)
{
	struct err err = { 0 };
	struct db *a = worker_of("one", ids[0]);
	struct db *b = worker_of("two", ids[1]);
	struct db *front = store_open(DB_FRONT);
	struct db *other = store_open(DB_FRONT);
	const char *json = NULL;
	struct sandbox sandbox;
	char long_text[40001];
	int64_t heard = 0;
	int64_t id;
	int fd = -1;
	bool created;
	struct job job;

	(void)node_find(front, "one", ids[0], &err);
	is_int(insert_editor(front, 1, &job), JOB_INSERTED, "at home");
	is_int(job.held_by, 1, "by our own socket");
	job_release(&job);
	(void)sandbox_create(b, 2, 3600, &sandbox, &created, &err);
	is_int(insert_editor(front, 2, &job), JOB_INSERTED, "elsewhere");
	is_int(job.held_by, JOB_HELD_ELSEWHERE, "by the database");
	id = job.id;
	job_release(&job);
	is_int(store_sql("SELECT held_by FROM jobs WHERE user_id = 2"),
	    JOB_HELD_ELSEWHERE, "which the row says");
	is_int(holder_response(front, &fd, &json), 0, "nothing yet");
	ok(fd >= 0, "but it may come");
	is_int(holder_respond(b, id, "{\"a\":\"\xc3\xa4\"}", &err), 0, "given");
	json = next_response(front, &heard);
	is_str(json, "{\"a\":\"\xc3\xa4\"}", "heard");
	is_int(heard, id, "of that job");
	is_int(holder_response(front, &fd, &json), 0, "once");
	is_int(holder_response(other, &fd, &json), 0, "by nobody else");

	/* behind the answer to a NOTIFY that nobody has waited for */
	for (int i = 0; i < 20; i++) {
		holder_notify(front, node_number(b));
		if (i % 2 == 0)
			(void)poll(NULL, 0, 5);
		is_int(holder_respond(b, id, "{\"b\":1}", &err), 0, "at once");
		is_str(next_response(front, &heard), "{\"b\":1}", "heard");
	}

	/* pieces that are equal, and characters of four bytes */
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	for (size_t i = 20000; i < sizeof(long_text) - 1; i += 4)
		memcpy(long_text + i, "\xf0\x9f\x90\x8d", 4);
	is_int(holder_respond(b, id, long_text, &err), 0, "a long one");
	json = next_response(front, &heard);
	ok(json != NULL && strcmp(json, long_text) == 0, "is whole");
	long_text[1900] = '\0';
	is_int(holder_respond(b, id, long_text, &err), 0, "as long as a piece");
	is_str(next_response(front, &heard), long_text, "is whole, too");

	(void)store_sql("UPDATE jobs SET state = 'queued', claimed_by = NULL");
	holder_await_none(front);
	is_int(job_peek(front, &err) >= 0, 1, "no more is waited for");
	is_int(holder_respond(b, id, "{}", &err), 0, "what comes then");
	is_int(job_peek(front, &err) >= 0, 1, "(a round)");
	is_int(holder_response(front, &fd, &json), 0, "is not heard");

	db_close(b);
	(void)store_sql("DELETE FROM jobs");
	is_int(insert_editor(front, 2, &job), JOB_HOME_AWAY, "nobody is there");
	job_release(&job);
	is_int(store_sql("SELECT count(*) FROM jobs"), 0, "no job is made");
	db_close(a);
	db_close(front);
	db_close(other);
}

/* With SQLite there is one host. */
static void
test_one_host(void)
{
	struct err err = { 0 };
	struct db *front = store_open(DB_FRONT);
	const char *json = NULL;
	struct job job;
	int fd = 0;

	is_int(insert_editor(front, 1, &job), JOB_INSERTED, "an editor");
	is_int(job.held_by, 1, "is at home");
	job_release(&job);
	is_int(holder_response(front, &fd, &json), 0, "nothing comes");
	is_int(fd, -1, "nor will it");
	is_int(node_lives(front, 1, &err), 0, "the host is there");
	holder_await_none(front);
	db_close(front);
}

int
main(void)
{
	(void)store_make();
	if (store_is_postgres())
		test_editor();
	else
		test_one_host();
	return tap_done();
}
