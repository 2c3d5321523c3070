/* SPDX-License-Identifier: MIT */
/*
 * `ilctl status`: the condition, and what it is made of, in a few lines.
 */
#include "status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

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
#include "where.h"

#define BROKER_MS 3000

bool
status_front_accepts(const struct config *config, const char *name,
    struct err *err)
{
	auto_free char *path = config_state_path(config,
	    strcmp(name, "il-fcgi") == 0 ? "fcgi.sock" : "api.sock");
	auto_close int fd = fd_connect_unix(path, SOCK_STREAM, err);

	return fd >= 0;
}

bool
status_ask_broker(const struct config *config, struct lease_status *status,
    struct err *err)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_CTL);

	return lease_status(path, status, BROKER_MS, err) == REFUSAL_NONE;
}

bool
status_nothing_runs(const struct config *config)
{
	struct lease_status status;
	struct err err = { 0 };

	return !where_is_run(config) &&
	    !status_front_accepts(config, "il-fcgi", &err) &&
	    !status_front_accepts(config, "il-api", &err) &&
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
	facts->front = status_front_accepts(config, "il-fcgi", &err) &&
	    age_ms >= 0 && age_ms <= CONDITION_OLD_MS;
	facts->api = status_front_accepts(config, "il-api", &err);
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
	       " starting, %" PRId64 " waited for\n",
	    s->cells, s->leased, s->starting, s->waiting);
	printf("disk         %s free: %s promised to who may write, %s kept "
	       "free, %s for more\n",
	    text_size(s->free_bytes).text, text_size(s->promised).text,
	    text_size(s->floor).text, text_size(lease_status_room(s)).text);
	printf("sandboxes    %" PRId64 "\n", s->sandboxes);
}

/* From the database, which is there whether anything runs or not. */
static void
print_jobs(struct db *db, const struct job_counts *counts)
{
	struct rules rules;
	struct err err = { 0 };

	if (rules_find(db, 0, 0, &rules, &err) == 0 &&
	    rules.of[RULE_SERVICE].blocked)
		printf("service      is paused (ilctl service)\n");
	printf("jobs         %" PRId64 " queued (oldest %" PRId64
	       " ms), %" PRId64 " running, %" PRId64 " to be told\n",
	    counts->queued, counts->oldest_ms, counts->running, counts->untold);
}

/* What the workers know of Discord's limits; nothing, before the first one has
 * made the file. */
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

/* The answer comes first; what it is made of, below. */
int
ctl_status(struct ctl *ctl)
{
	struct condition_facts facts;
	struct condition_verdict verdict;
	struct job_counts counts = { 0 };
	struct err err = { 0 };
	auto_db struct db *db = db_open(ctl->config.database, DB_READER, &err);

	if (status_nothing_runs(&ctl->config)) {
		printf("DEGRADED: nothing runs in %s \u2192 make run, or "
		       "systemctl start inline.target\n",
		    ctl->config.state_dir);
		return CTL_FAILED;
	}
	if (db == NULL)
		(void)ctl_fail(ctl->argv[0], &err);
	status_look(&ctl->config, db, &facts, &counts);
	condition_judge(&facts, &verdict);
	if (verdict.what == CONDITION_WELL)
		printf("healthy\n");
	else
		printf("DEGRADED: %s \u2192 %s\n", verdict.text, verdict.mend);
	print_status(ctl, &facts);
	if (facts.database)
		print_jobs(db, &counts);
	return verdict.what == CONDITION_WELL ? CTL_OK : CTL_FAILED;
}
