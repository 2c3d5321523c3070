/* SPDX-License-Identifier: MIT */
/* The operator's rules: the rule that holds, the role that may write it, the
 * limits that a new job meets. */
#include "store.h"
#include "store/connection.h"
#include "store/sandbox.h"

#define GUILD 300

static struct rules
found(struct db *db, int64_t user, int64_t guild)
{
	struct rules rules;
	struct err err = { 0 };

	is_int(rules_find(db, user, guild, &rules, &err), 0, "rules are read");
	return rules;
}

static void
test_whose(struct db *admin, struct db *front)
{
	struct err err = { 0 };
	const struct rule none = { .blocked = false };
	struct rule all = { .banner = "until six", .timeout_ms = 3000 };
	struct rule guild = { .rate = 5, .quota = 1 << 20 };
	struct rule user = {
		.blocked = true, .reason = "no", .jobs = 2, .timeout_ms = 9000
	};
	struct rules rules;

	is_int(rule_put(admin, RULE_SERVICE, 0, &all, &err), 0, "of all");
	is_int(rule_put(admin, RULE_GUILD, GUILD, &guild, &err), 0,
	    "of a server");
	is_int(rule_put(admin, RULE_USER, 7, &user, &err), 0, "of a person");
	rules = found(front, 7, GUILD);
	ok(rules.of[RULE_USER].blocked && !rules.of[RULE_GUILD].blocked,
	    "one is blocked");
	is_str(rules.of[RULE_USER].reason, "no", "with a reason");
	is_str(rules.of[RULE_SERVICE].banner, "until six", "all have a banner");
	is_int(rules.of[RULE_GUILD].rate, 5, "the server has a rate");
	is_int(rules.of[RULE_USER].rate, 0, "the person none");
	is_int(rules_number(&rules, offsetof(struct rule, timeout_ms), 100),
	    9000, "the person's time comes first");
	is_int(rules_number(&rules, offsetof(struct rule, quota), 100), 1 << 20,
	    "else the server's");
	rules = found(front, GUILD, 7);
	ok(!rules.of[RULE_USER].blocked && rules.of[RULE_GUILD].rate == 0,
	    "a person's number is no server's");
	is_int(rules_number(&rules, offsetof(struct rule, timeout_ms), 100),
	    3000, "what is said of all holds");
	is_int(rules_number(&rules, offsetof(struct rule, quota), 100), 100,
	    "or the settings do");
	is_int(rule_put(admin, RULE_USER, 7, &none, &err), 0, "unblocked");
	is_int(store_sql("SELECT count(*) FROM rules WHERE subject = 'user'"),
	    0, "what says nothing leaves no row");
	is_int(rule_put(admin, RULE_USER, 7, &all, &err), -1,
	    "a person has no banner");
	(void)store_sql("DELETE FROM rules");
}

/* They have no such statement. */
static void
test_rights(const struct db *front, const struct db *worker)
{
	ok(front->statements[STATEMENT_RULE_PUT].handle == NULL &&
		worker->statements[STATEMENT_RULE_PUT].handle == NULL &&
		worker->statements[STATEMENT_RULE_TIDY].handle == NULL,
	    "neither front nor worker writes rules");
}

static enum job_insert_result
insert(struct db *db, int64_t user, int64_t guild, enum job_kind kind,
    const struct job_limits *limits)
{
	struct err err = { 0 };
	struct job job = store_job(user, kind);
	enum job_insert_result result;

	job.guild_id = guild;
	result = job_insert(db, &job, limits, &err);
	job_release(&job);
	return result;
}

static void
test_limits(struct db *front)
{
	struct job_limits guild = {
		.queue_max = 99, .user_rate = 99, .guild_rate = 2
	};
	struct job_limits open = guild;
	struct job_limits user = guild;
	struct job_limits all = guild;

	is_int(insert(front, 1, GUILD, JOB_PY, &guild), JOB_INSERTED, "first");
	is_int(insert(front, 2, GUILD, JOB_PY, &guild), JOB_INSERTED, "second");
	is_int(insert(front, 3, GUILD, JOB_PY, &guild), JOB_GUILD_TOO_MANY,
	    "the third of a server's two in a minute");
	is_int(insert(front, 3, GUILD + 1, JOB_PY, &guild), JOB_INSERTED,
	    "another server has its own");
	is_int(store_sql("SELECT guild_id FROM jobs WHERE user_id = 3"),
	    GUILD + 1, "which is noted");
	(void)store_sql("UPDATE jobs SET received_ms = received_ms - 60001");
	is_int(insert(front, 4, GUILD, JOB_PY, &guild), JOB_INSERTED,
	    "a minute later");
	open.guild_rate = 0;
	open.guild_jobs = 3;
	is_int(insert(front, 5, GUILD, JOB_PY, &open), JOB_GUILD_TOO_MANY,
	    "a server's three at one time are all it has");
	(void)store_sql("DELETE FROM jobs WHERE user_id = 1");
	is_int(insert(front, 5, GUILD, JOB_PY, &open), JOB_INSERTED,
	    "until one is over");
	user.guild_rate = 0;
	user.user_jobs = 1;
	is_int(insert(front, 5, 0, JOB_HEALTH, &user), JOB_RUNNING,
	    "one at a time: nothing beside a run");
	user.user_jobs = 2;
	is_int(insert(front, 5, 0, JOB_HEALTH, &user), JOB_INSERTED,
	    "two at a time");
	all.guild_rate = 0;
	all.service_rate = 3;
	is_int(insert(front, 8, 0, JOB_PY, &all), JOB_QUEUE_FULL,
	    "all together have sent three in a minute");
	all.service_rate = 4;
	is_int(insert(front, 8, 0, JOB_PY, &all), JOB_INSERTED, "or four");
	(void)store_sql("DELETE FROM jobs");
}

static void
test_cpu(struct db *worker)
{
	struct err err = { 0 };
	struct job job;
	int64_t id = store_insert(worker, 1, JOB_PY);

	(void)job_claim(worker, 0, &job, &err);
	job_release(&job);
	is_int(job_finish(worker, id, 0, "{}", "exit 0", 120, &err), 0, "over");
	is_int(store_sql("SELECT cpu_ms FROM jobs"), 120, "its time is noted");
	(void)store_sql("DELETE FROM jobs");
}

static void
test_words(void)
{
	auto_buf struct buf out = BUF_INIT(8192);
	char text[RULE_TEXT_SIZE];

	rule_add_text(&out, "a\n```b\033[31m\xff");
	is_str(buf_str(&out), "\n> a '''b\xef\xbf\xbd",
	    "words are one line and no code");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	buf_cut(&out, 0);
	rule_add_text(&out, text);
	is_int((int64_t)out.len, RULE_TEXT_MOST + 3, "and bounded");
}

int
main(void)
{
	struct db *admin;
	struct db *front;
	struct db *worker;

	(void)store_make();
	admin = store_open(DB_ADMIN);
	front = store_open(DB_FRONT);
	worker = store_open(DB_WORKER);
	test_rights(front, worker);
	test_whose(admin, front);
	test_limits(front);
	test_cpu(worker);
	test_words();
	db_close(admin);
	db_close(front);
	db_close(worker);
	return tap_done();
}
