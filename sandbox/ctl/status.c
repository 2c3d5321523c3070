/* SPDX-License-Identifier: MIT */
/*
 * `ilctl status`: the condition, and what it is made of, in a few lines.
 */
#include "status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/text.h"
#include "../protocol/condition.h"
#include "../protocol/lease.h"
#include "../rest/brake.h"
#include "../store/db.h"
#include "../store/job.h"
#include "../store/rule.h"
#include "ctl.h"
#include "table.h"
#include "where.h"

#define ANSWER_MS 3000

/* FastCGI's FCGI_GET_VALUES, of which no request begins: whoever accepts the
 * connection answers.  Version, kind, 17 bytes with 7 of padding; one name. */
static const char question[] = "\1\11\0\0\0\21\7\0"
			       "\17\0FCGI_MPXS_CONNS\0\0\0\0\0\0";

static int
connect_front(const struct config *config, const char *name, struct err *err)
{
	auto_free char *path = config_state_path(config,
	    strcmp(name, "il-fcgi") == 0 ? "fcgi.sock" : "api.sock");

	return fd_connect_unix(path, SOCK_STREAM, err);
}

bool
status_front_answers(const struct config *config, const char *name,
    struct err *err)
{
	auto_close int fd = connect_front(config, name, err);
	char answer[64];
	ssize_t len = -1;

	if (fd >= 0 && fd_write_all(fd, question, sizeof(question), err) == 0)
		len = fd_receive_packet(fd, answer, sizeof(answer), NULL,
		    ANSWER_MS, err);
	if (len == 0)
		(void)err_set(err, ERR_UNAVAILABLE, "hangs up");
	return len > 0;
}

bool
status_ask_broker(const struct config *config, struct lease_status *status,
    struct err *err)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_CTL);

	return lease_status(path, status, ANSWER_MS, err) == REFUSAL_NONE;
}

/* Has this program a socket that somebody listens on? */
static bool
listens(const struct config *config, const char *name)
{
	struct err err = { 0 };
	auto_close int fd = connect_front(config, name, &err);

	return fd >= 0;
}

bool
status_nothing_runs(const struct config *config)
{
	struct lease_status status;
	struct pulse_count workers;
	struct err err = { 0 };

	pulse_look(config, &workers, NULL);
	return workers.alive == 0 && !where_is_run(config) &&
	    !listens(config, "il-fcgi") && !listens(config, "il-api") &&
	    !status_ask_broker(config, &status, &err);
}

void
status_look(const struct config *config, struct db *db,
    struct condition_facts *facts, struct job_counts *counts)
{
	struct condition_jobs told;
	struct err err = { 0 };
	int64_t age_ms = condition_read_jobs(config, &told);

	condition_look(facts, config);
	facts->front = status_front_answers(config, "il-fcgi", &err) &&
	    age_ms >= 0 && age_ms <= CONDITION_OLD_MS;
	facts->api = status_front_answers(config, "il-api", &err);
	facts->broker = status_ask_broker(config, &facts->status, &err);
	facts->database = db != NULL && job_count(db, counts, &err) == 0;
	facts->oldest_ms = facts->database ? counts->oldest_ms : 0;
}

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
print_brake(const struct config *config)
{
	auto_free char *path = config_state_path(config, "worker/brake");
	struct brake_state brake;
	struct err err = { 0 };

	if (brake_read(path, clock_wall_ms(), &brake, &err) < 0)
		return;
	printf("discord      ");
	if (brake.blocked_ms > 0)
		printf("takes nothing for %" PRId64 " s more, ",
		    brake.blocked_ms / 1000 + 1);
	printf("%" PRId64 " invalid requests in 10 minutes (at most %d)\n",
	    brake.invalid, BRAKE_HALT);
}

static void
print_status(const struct ctl *ctl, const struct condition_facts *facts)
{
	printf("il-fcgi      %s\nil-api       %s\nil-sandboxd  %s\n",
	    facts->front ? "running" : "not running",
	    facts->api ? "running" : "not running",
	    facts->broker ? "running" : "not running");
	printf("workers      %d running, %d of them move\n",
	    facts->workers.alive, facts->workers.moving);
	if (facts->broker)
		print_broker(&facts->status);
	print_brake(&ctl->config);
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
print_json(const struct condition_facts *facts,
    const struct condition_verdict *v, const struct job_counts *counts)
{
	json_t *jobs = json_pack("{s:I, s:I, s:I, s:I}", "queued",
	    (json_int_t)counts->queued, "oldest_ms",
	    (json_int_t)counts->oldest_ms, "running",
	    (json_int_t)counts->running, "untold", (json_int_t)counts->untold);

	return table_print_json(json_pack(
	    "{s:b, s:s, s:o, s:o, s:b, s:b, s:b, s:b, s:i, s:i, s:o, s:o}",
	    "healthy", v->what == CONDITION_WELL, "condition",
	    condition_words[v->what], "text", table_text_to_json(v->text),
	    "mend", table_text_to_json(v->mend), "il_fcgi", facts->front,
	    "il_api", facts->api, "il_sandboxd", facts->broker, "database",
	    facts->database, "workers", facts->workers.alive, "moving",
	    facts->workers.moving, "broker", broker_to_json(&facts->status),
	    "jobs", jobs));
}

static int
print_text(const struct ctl *ctl, struct db *db, bool nothing,
    const struct condition_facts *facts, const struct condition_verdict *v,
    const struct job_counts *counts)
{
	if (v->what == CONDITION_WELL)
		printf("healthy\n");
	else
		printf("DEGRADED: %s \u2192 %s\n", v->text, v->mend);
	if (nothing)
		return CTL_OK;
	print_status(ctl, facts);
	if (facts->database)
		print_jobs(db, counts);
	return CTL_OK;
}

/* The answer comes first; what it is made of, below. */
int
ctl_status(struct ctl *ctl)
{
	struct condition_facts facts;
	struct condition_verdict verdict;
	struct job_counts counts = { 0 };
	struct err err = { 0 };
	auto_db struct db *db = db_open(ctl->config.database, DB_READER, &err);
	bool nothing = status_nothing_runs(&ctl->config);
	int code;

	if (db == NULL && !nothing)
		(void)ctl_fail(ctl->argv[0], &err);
	if (nothing) {
		facts = (struct condition_facts){ .status.engine_age_ms = -1 };
		facts.database = db != NULL &&
		    job_count(db, &counts, &err) == 0;
		verdict.what = CONDITION_FRONT;
		(void)snprintf(verdict.text, sizeof(verdict.text),
		    "nothing runs in %s", ctl->config.state_dir);
		(void)snprintf(verdict.mend, sizeof(verdict.mend), "%s",
		    CONDITION_START_ALL);
	} else {
		status_look(&ctl->config, db, &facts, &counts);
		condition_judge(&facts, &verdict);
	}
	code = ctl->json ?
	    print_json(&facts, &verdict, &counts) :
	    print_text(ctl, db, nothing, &facts, &verdict, &counts);
	return code == CTL_OK && verdict.what != CONDITION_WELL ? CTL_FAILED :
								  code;
}
