/* SPDX-License-Identifier: MIT */
/*
 * `ilctl doctor`: all that can be wrong with an installation, each with what
 * mends it; and `ilctl status`: the condition, and what it is made of.
 */
#include "ctl/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "protocol/condition.h"
#include "protocol/counters.h"
#include "protocol/lease.h"
#include "protocol/tokens.h"
#include "rest/limiter.h"
#include "store/db.h"
#include "store/job.h"
#include "store/sandbox.h"

#define LINE_MAX_BYTES 16384
#define ANSWER_MS 3000

static const struct {
	const char *mark;
	const char *text;
	const char *mend;
} findings[FINDINGS] = {
#define FINDING(name, ...) [FOUND_##name] = { __VA_ARGS__ },
#include "ctl/doctor.def"
};

void
doctor_fill(struct buf *out, const char *text,
    const char *const values[FINDING_VALUES])
{
	for (; *text != '\0'; text++)
		if (*text != '@' || text[1] < '1' ||
		    text[1] > '0' + FINDING_VALUES)
			buf_addc(out, *text);
		else if (values[*++text - '1'] != NULL)
			buf_adds(out, values[*text - '1']);
}

struct text_short
doctor_number(int64_t n)
{
	struct text_short text;

	(void)snprintf(text.text, sizeof(text.text), "%" PRId64, n);
	return text;
}

void
doctor_add(struct doctor *d, enum finding what,
    const char *const values[FINDING_VALUES])
{
	auto_buf struct buf text = BUF_INIT(LINE_MAX_BYTES);
	auto_buf struct buf mend = BUF_INIT(LINE_MAX_BYTES);
	const char *mark = findings[what].mark;
	bool failed = strcmp(mark, "FAIL") == 0;

	doctor_fill(&text, findings[what].text, values);
	doctor_fill(&mend, findings[what].mend, values);
	d->failed += failed;
	if (d->lines != NULL) {
		(void)json_array_append_new(d->lines,
		    json_pack("{s:s, s:o, s:o}", "result", mark, "text",
			table_text_to_json(buf_str(&text)), "mend",
			table_text_to_json(buf_str(&mend))));
		return;
	}
	printf("%-4s  %s\n", mark, buf_str(&text));
	if (mend.len > 0)
		printf("      %s: %s\n", failed ? "mend" : "better",
		    buf_str(&mend));
}

/* ---- questions to the programs that run ---- */

/* FastCGI's FCGI_GET_VALUES begins no request: the child that accepts the
 * connection answers.  Version, kind, 17 bytes with 7 of padding; one name. */
static const char question[] = "\1\11\0\0\0\21\7\0"
			       "\17\0FCGI_MPXS_CONNS\0\0\0\0\0\0";

/* 1: a child of this front answers in time; 0: none does; -1: no program
 * listens there. */
static int
ask_front(const struct config *config, const char *socket, struct err *err)
{
	auto_free char *path = config_state_path(config, socket);
	auto_close int fd = fd_connect_unix(path, SOCK_STREAM, err);
	char answer[64];
	ssize_t len = -1;

	if (fd < 0)
		return -1;
	if (fd_write_all(fd, question, sizeof(question), err) == 0)
		len = fd_receive_packet(fd, answer, sizeof(answer), NULL,
		    ANSWER_MS, err);
	if (len == 0)
		(void)err_set(err, ERR_UNAVAILABLE, "hangs up");
	return len > 0;
}

/* All facts, and the jobs counted; db: NULL where it does not open. */
static void
doctor_ask_all(struct doctor *d, struct db *db)
{
	auto_free char *path = config_state_path(d->config, SOCKET_BROKER_CTL);
	struct condition_facts *facts = &d->facts;
	struct condition_jobs told;
	struct err err;
	int64_t age_ms = -1;
	int front = ask_front(d->config, "fcgi.sock", &d->refusals[0]);
	int api = ask_front(d->config, "api.sock", &d->refusals[1]);

	condition_look(facts, d->config);
	facts->broker = lease_status(path, &facts->status, ANSWER_MS,
			    &d->refusals[2]) == REFUSAL_NONE;
	d->nothing = front < 0 && api < 0 && !facts->broker &&
	    facts->workers.alive == 0 && !where_is_run(d->config);
	if (!d->nothing)
		age_ms = condition_read_jobs(d->config, &told);
	facts->front = front > 0 && age_ms >= 0 && age_ms <= CONDITION_OLD_MS;
	facts->api = api > 0;
	facts->database = db != NULL && job_count(db, &d->counts, &err) == 0;
	facts->oldest_ms = facts->database ? d->counts.oldest_ms : 0;
}

/* ---- doctor ---- */

/* Are the keys of the developer portal here? */
static void
check_keys(struct doctor *d)
{
	const struct config *c = d->config;

	doctor_say(d,
	    *c->discord_public_key == '\0'     ? FOUND_KEYS_STANDIN :
		c->discord_application_id == 0 ? FOUND_KEYS_NO_ID :
		*c->discord_token == '\0'      ? FOUND_KEYS_NO_TOKEN :
						 FOUND_KEYS_GOOD,
	    "");
}

/* One file of each kind stands for all. */
static void
check_library(struct doctor *d)
{
	static const char *const files[] = { "cell/cell.py", "seccomp.json",
		"nginx.conf.in", "commands.json" };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		auto_free char *path = xprintf("%s/%s", d->config->lib_dir,
		    files[i]);

		if (access(path, R_OK) != 0) {
			doctor_say(d, FOUND_LIBRARY_MISSING, path);
			return;
		}
	}
	doctor_say(d, FOUND_LIBRARY_GOOD, d->config->lib_dir);
	/* `make install` may have left another one beside the package. */
	if (strcmp(d->config->lib_dir, "/usr/lib/inline") == 0 &&
	    access("/usr/local/bin/ilctl", F_OK) == 0)
		doctor_say(d, FOUND_LIBRARY_TWICE, "");
}

static bool
is_read_only(const char *path)
{
	return access(path, W_OK) != 0 && errno == EROFS;
}

/* Is the folder there, and may this user write there? */
static void
check_folder(struct doctor *d, const char *name, const char *path)
{
	struct stat st;

	doctor_say(d,
	    stat(path, &st) != 0 || !S_ISDIR(st.st_mode) ?
		FOUND_FOLDER_MISSING :
		is_read_only(path)		      ? FOUND_FOLDER_READ_ONLY :
		access(path, R_OK | W_OK | X_OK) != 0 ? FOUND_FOLDER_CLOSED :
							FOUND_FOLDER_GOOD,
	    name, path);
}

static void
check_folders(struct doctor *d)
{
	check_folder(d, "state", d->config->state_dir);
	check_folder(d, "sandboxes", d->config->base_dir);
}

/* Note rules that an operator may have forgotten. */
static void
doctor_check_rules(struct doctor *d, struct db *db)
{
	struct rules rules;
	struct err err = { 0 };

	if (rules_find(db, 0, 0, &rules, &err) != 0)
		return; /* check_database() reports it */
	if (rules.of[RULE_SERVICE].blocked)
		doctor_say(d, FOUND_PAUSED, "");
	if (rules.of[RULE_SERVICE].banner[0] != '\0')
		doctor_say(d, FOUND_BANNER, "");
}

/* Open it as a worker does, take the write lock, and let go. */
static void
check_database(struct doctor *d)
{
	const char *path = d->config->database;
	struct err err = { 0 };
	struct job_counts counts = { 0 };
	auto_db struct db *db = db_open(path, DB_WORKER, &err);

	if (db == NULL || db_begin(db, &err) != 0) {
		doctor_say(d,
		    is_read_only(path) ? FOUND_DATABASE_READ_ONLY :
					 FOUND_DATABASE_BAD,
		    err.text);
		return;
	}
	db_rollback(db);
	if (job_count(db, &counts, &err) != 0)
		doctor_say(d, FOUND_DATABASE_UNREADABLE, err.text);
	else
		doctor_say(d, FOUND_DATABASE_GOOD, path,
		    doctor_number(counts.queued).text,
		    doctor_number(counts.running).text,
		    doctor_number(counts.untold).text);
	doctor_check_rules(d, db);
}

static void
check_fronts(struct doctor *d)
{
	static const char *const fronts[] = { "il-fcgi", "il-api" };

	if (d->nothing) {
		doctor_say(d, FOUND_NOTHING_RUNS, d->config->state_dir);
		return;
	}
	for (size_t i = 0; i < 2; i++)
		doctor_say(d,
		    d->refusals[i].code == ERR_NONE ? FOUND_PROGRAM_GOOD :
						      FOUND_PROGRAM_BAD,
		    fronts[i], d->refusals[i].text);
}

/* il-sandboxd knows of itself and of the engine. */
static void
check_broker(struct doctor *d)
{
	const struct lease_status *s = &d->facts.status;

	if (d->nothing)
		return;
	if (!d->facts.broker) {
		doctor_say(d, FOUND_PROGRAM_BAD, "il-sandboxd",
		    d->refusals[2].text);
		return;
	}
	doctor_say(d, FOUND_BROKER_GOOD, doctor_number(s->cells).text,
	    doctor_number(s->leased).text,
	    *s->python != '\0' ? ", Python " : "", s->python);
	if (s->engine_age_ms < 0)
		doctor_say(d, FOUND_BROKER_NEW, "");
	else if (!s->engine)
		doctor_say(d, FOUND_BROKER_ENGINE,
		    doctor_number(s->engine_age_ms / 1000).text, s->trouble);
}

/* Space that is promised to sandboxes is not free for another one. */
static void
check_ledger(struct doctor *d)
{
	const int64_t left = lease_status_room(&d->facts.status);

	if (d->facts.broker)
		doctor_say(d,
		    left < d->config->quota ? FOUND_LEDGER_FULL :
					      FOUND_LEDGER_GOOD,
		    text_size(d->facts.status.promised).text,
		    text_size(left).text);
}

/* The APIs serve those that have tokens. */
static void
check_tokens(struct doctor *d)
{
	const char *path = d->config->api_tokens_file;
	auto_tokens struct tokens tokens = { 0 };
	struct err err;

	if (*path == '\0')
		doctor_say(d, FOUND_TOKENS_NONE, "");
	else if (tokens_open(&tokens, path, &err) < 0)
		doctor_say(d, FOUND_TOKENS_BAD, err.text);
	else
		doctor_say(d, FOUND_TOKENS_GOOD,
		    doctor_number((int64_t)tokens.count).text, path);
}

/* The condition is what /health and the chat say, too.  A check above may have
 * found its cause. */
static void
check_condition(struct doctor *d)
{
	struct condition_verdict verdict;

	if (d->nothing)
		return;
	condition_judge(&d->facts, &verdict);
	doctor_say(d,
	    verdict.what == CONDITION_WELL ? FOUND_CONDITION_GOOD :
					     FOUND_CONDITION_BAD,
	    verdict.text, verdict.mend);
}

/* The checks, in the order of their lines. */
static void (*const checks[])(struct doctor *d) = { check_keys, check_library,
	check_folders, check_database, doctor_engine, doctor_images,
	doctor_loop, doctor_nginx, doctor_disk, check_fronts, check_broker,
	check_ledger, doctor_http, doctor_isolation, check_tokens,
	doctor_discord, doctor_application, check_condition };

static int
doctor_finish(const struct doctor *d, int code)
{
	if (d->lines != NULL)
		return table_print_json(json_pack("{s:i, s:o}", "failed",
			   d->failed, "checks", d->lines)) == CTL_OK ?
		    code :
		    CTL_FAILED;
	if (code == CTL_OK)
		printf("\nNothing is wrong.\n");
	else if (code == CTL_FAILED)
		printf("\n%d thing%s wrong.\n", d->failed,
		    d->failed == 1 ? " is" : "s are");
	return code;
}

/* With a wrong configuration nothing else can be checked. */
int
ctl_doctor(struct ctl *ctl, struct err *err)
{
	struct doctor d = { .config = &ctl->config };
	auto_db struct db *db = NULL;

	d.lines = ctl->json ? json_array() : NULL;
	if (config_load(&ctl->config, ctl->env_file, err) != 0) {
		doctor_say(&d, FOUND_SETTINGS_BAD, err->text);
		return doctor_finish(&d, CTL_CONFIG);
	}
	doctor_say(&d, FOUND_SETTINGS_GOOD, "");
	db = db_open(d.config->database, DB_READER, err);
	doctor_ask_all(&d, db);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](&d);
	return doctor_finish(&d, d.failed == 0 ? CTL_OK : CTL_FAILED);
}

/* ---- status ---- */

static void
print_broker(const struct lease_status *s)
{
	if (s->engine_age_ms < 0)
		printf("engine       not asked yet\n");
	else
		printf("engine       %s (asked %" PRId64 " s ago)%s%s\n",
		    s->engine ? "answers" : "does not answer",
		    s->engine_age_ms / 1000, *s->trouble != '\0' ? ": " : "",
		    s->trouble);
	printf("image        %s%s%s%s\n", s->image_name,
	    s->image ? "" : " (missing)", *s->python != '\0' ? ", Python " : "",
	    s->python);
	printf("cells        %" PRId64 " running, %" PRId64 " leased, %" PRId64
	       " starting, %" PRId64 " commands waiting\n",
	    s->cells, s->leased, s->starting, s->waiting);
	printf("disk         %s free: %s reserved for sandboxes, %s kept "
	       "free, %s for more\n",
	    text_size(s->free_bytes).text, text_size(s->promised).text,
	    text_size(s->floor).text, text_size(lease_status_room(s)).text);
	printf("sandboxes    %" PRId64 "\n", s->sandboxes);
}

/* The database can be read where nothing runs, too. */
static void
print_jobs(struct db *db, const struct job_counts *counts)
{
	struct rules rules;
	struct err err = { 0 };

	if (rules_find(db, 0, 0, &rules, &err) == 0 &&
	    rules.of[RULE_SERVICE].blocked)
		printf("service      is paused (ilctl service)\n");
	printf("jobs         %" PRId64 " queued (oldest %" PRId64
	       " ms), %" PRId64 " running, %" PRId64 " not delivered\n",
	    counts->queued, counts->oldest_ms, counts->running, counts->untold);
}

/* The workers write down what they know of Discord's limits.  Before the first
 * of them has done so this prints nothing. */
static void
print_limiter(const struct config *config)
{
	auto_free char *path = config_state_path(config, "worker/brake");
	struct limiter_state limiter;
	struct err err = { 0 };

	if (limiter_read_file(path, clock_wall_ms(), &limiter, &err) < 0)
		return;
	printf("discord      ");
	if (limiter.blocked_ms > 0)
		printf("takes nothing for %" PRId64 " s more, ",
		    limiter.blocked_ms / 1000 + 1);
	printf("%" PRId64 " invalid requests in 10 minutes (at most %d)\n",
	    limiter.invalid, LIMITER_HALT);
}

/* A value that is not known is 0, false or "". */
static json_t *
broker_to_json(const struct lease_status *s)
{
	return json_pack("{s:b, s:I, s:o, s:b, s:s, s:s, s:I, s:I, s:I, s:I, "
			 "s:I, s:I, s:I, s:I}",
	    "engine", s->engine, "engine_age_ms", (json_int_t)s->engine_age_ms,
	    "trouble", table_text_to_json(s->trouble), "image", s->image,
	    "image_name", s->image_name, "python", s->python, "cells",
	    (json_int_t)s->cells, "leased", (json_int_t)s->leased, "starting",
	    (json_int_t)s->starting, "waiting", (json_int_t)s->waiting,
	    "sandboxes", (json_int_t)s->sandboxes, "promised_bytes",
	    (json_int_t)s->promised, "floor_bytes", (json_int_t)s->floor,
	    "room_bytes", (json_int_t)lease_status_room(s));
}

static int
status_print_json(const struct doctor *d, const struct condition_verdict *v)
{
	const struct condition_facts *facts = &d->facts;
	const struct job_counts *counts = &d->counts;

	return table_print_json(json_pack(
	    "{s:b, s:s, s:o, s:o, s:b, s:b, s:b, s:b, s:i, s:i, s:o, "
	    "s:{s:I, s:I, s:I, s:I}}",
	    "healthy", v->what == CONDITION_WELL, "condition",
	    condition_words[v->what], "text", table_text_to_json(v->text),
	    "mend", table_text_to_json(v->mend), "il_fcgi", facts->front,
	    "il_api", facts->api, "il_sandboxd", facts->broker, "database",
	    facts->database, "workers", facts->workers.alive, "moving",
	    facts->workers.moving, "broker", broker_to_json(&facts->status),
	    "jobs", "queued", (json_int_t)counts->queued, "oldest_ms",
	    (json_int_t)counts->oldest_ms, "running",
	    (json_int_t)counts->running, "untold", (json_int_t)counts->untold));
}

static void
print_text(const struct doctor *d, struct db *db,
    const struct condition_verdict *v)
{
	const struct condition_facts *facts = &d->facts;

	if (v->what == CONDITION_WELL)
		printf("healthy\n");
	else
		printf("DEGRADED: %s \u2192 %s\n", v->text, v->mend);
	if (d->nothing)
		return;
	printf("il-fcgi      %s\nil-api       %s\nil-sandboxd  %s\n",
	    facts->front ? "running" : "not running",
	    facts->api ? "running" : "not running",
	    facts->broker ? "running" : "not running");
	printf("workers      %d running, %d of them move\n",
	    facts->workers.alive, facts->workers.moving);
	if (facts->broker)
		print_broker(&facts->status);
	print_limiter(d->config);
	if (facts->database)
		print_jobs(db, &d->counts);
}

/* The condition comes first, its parts below. */
int
ctl_status(struct ctl *ctl, struct err *err)
{
	struct doctor d = { .config = &ctl->config };
	struct condition_verdict verdict;
	auto_db struct db *db = db_open(ctl->config.database, DB_READER, err);
	int code = CTL_OK;

	doctor_ask_all(&d, db);
	condition_judge(&d.facts, &verdict);
	if (d.nothing) {
		d.facts.status.engine_age_ms = -1;
		verdict.what = CONDITION_FRONT;
		(void)snprintf(verdict.text, sizeof(verdict.text),
		    "nothing runs in %s", ctl->config.state_dir);
		(void)snprintf(verdict.mend, sizeof(verdict.mend), "%s",
		    CONDITION_START_ALL);
	} else if (db == NULL) {
		(void)ctl_fail(ctl->argv[0], err);
	}
	if (ctl->json)
		code = status_print_json(&d, &verdict);
	else
		print_text(&d, db, &verdict);
	return code == CTL_OK && verdict.what != CONDITION_WELL ? CTL_FAILED :
								  code;
}
