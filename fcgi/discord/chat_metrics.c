/* SPDX-License-Identifier: MIT */
#include "discord/chat_metrics.h"

#include <stdio.h>
#include <sys/stat.h>

#include "server/health.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/exposition.h"
#include "base/log.h"
#include "base/shared_file.h"
#include "protocol/tally.h"
#include "store/db.h"
#include "store/job.h"
#include "store/rule.h"
#include "store/sandbox.h"

struct chat_metrics {
	_Atomic int64_t interactions[INTERACTION_TYPES][CHAT_OUTCOMES];
	/* of interactions that a person waits for */
	struct histogram response[CHAT_OUTCOMES];
};

static const char *const outcomes[CHAT_OUTCOMES] = {
	[CHAT_PONG] = "pong",
	[CHAT_SAID] = "said",
	[CHAT_REFUSED] = "refused",
	[CHAT_FAULT] = "fault",
	[CHAT_ANSWERED] = "answered",
	[CHAT_DEFERRED] = "deferred",
	[CHAT_HANDED_ON] = "handed_on",
	[CHAT_HUNG_UP] = "hung_up",
	[CHAT_LATE] = "late",
	[CHAT_UNSIGNED] = "unsigned",
	[CHAT_DENIED] = "denied",
};

struct chat_metrics *
chat_metrics_open(struct err *err)
{
	return shared_file_open(NULL, sizeof(struct chat_metrics), err);
}

void
chat_metrics_close(struct chat_metrics *m)
{
	shared_file_close(m, sizeof(*m));
}

/* ---- counting ---- */

void
chat_metrics_count(struct chat_metrics *m, enum interaction_type type,
    enum chat_outcome outcome, int64_t received_ms)
{
	m->interactions[type][outcome]++;
	if (outcome >= CHAT_SAID && outcome <= CHAT_DEFERRED)
		histogram_observe(&m->response[outcome],
		    (clock_wall_ms() - received_ms) * 1000);
}

/* ---- the report ---- */

static void
add_interactions(struct buf *out, const struct chat_metrics *m)
{
	const struct exposition_label type = { "type", interaction_types,
		INTERACTION_TYPES };
	const struct exposition_label outcome = { "outcome", outcomes,
		CHAT_OUTCOMES };

	exposition_table(out, "inline_interactions_total", "counter",
	    "Requests to /interactions, by what came of them.", &type, &outcome,
	    &m->interactions[0][0]);
	exposition_histograms(out, "inline_interaction_response_seconds",
	    "From an interaction's first byte to its first response.", &outcome,
	    m->response);
}

static int
add_jobs(struct buf *out, struct db *db, struct err *err)
{
	static const char name[] = "inline_jobs";
	static int64_t counts[JOB_UNKNOWN + 1][JOB_STATES];
	struct job_counts all;
	char labels[128];

	if (job_count(db, &all, err) < 0 ||
	    job_count_kinds(db, counts, err) < 0)
		return -1;
	exposition_head(out, name, "gauge",
	    "Commands that are not over, by kind and state.");
	for (int i = 0; i <= JOB_UNKNOWN; i++)
		for (size_t k = 0; k < JOB_STATES; k++) {
			(void)snprintf(labels, sizeof(labels),
			    "kind=\"%s\",state=\"%s\"", commands[i].name,
			    job_states[k]);
			exposition_number(out, name, labels, counts[i][k]);
		}
	exposition_head(out, "inline_job_queue_age_seconds", "gauge",
	    "Age of the oldest command that no worker has; 0: there is none.");
	exposition_seconds(out, "inline_job_queue_age_seconds",
	    all.oldest_ms * 1000);
	return 0;
}

static int
add_sandboxes(struct buf *out, const struct config *config, struct db *db,
    struct err *err)
{
	static const char name[] = "inline_sandboxes";
	struct sandbox_counts counts;

	if (sandbox_count(db, &counts, err) < 0)
		return -1;
	exposition_head(out, name, "gauge", "Sandboxes of people, by state.");
	exposition_number(out, name, "state=\"active\"", counts.active);
	exposition_number(out, name, "state=\"expiring\"", counts.expiring);
	exposition_number(out, name, "state=\"removing\"", counts.removing);
	exposition_gauge(out, "inline_sandboxes_overdue",
	    "Active ones whose time is over.", counts.overdue);
	exposition_gauge(out, "inline_sandboxes_limit",
	    "How many there may be.", config->sandboxes);
	return 0;
}

static int
add_rules(struct buf *out, struct db *db, struct err *err)
{
	struct rules rules;

	if (rules_find(db, 0, 0, &rules, err) != 0)
		return -1;
	exposition_gauge(out, "inline_paused",
	    "Whether the operator lets nobody in.",
	    rules.of[RULE_SERVICE].blocked);
	return 0;
}

/* The size of the database's file or of its log; 0: it is not there. */
static void
add_size(struct buf *out, const char *name, const char *help, const char *path,
    const char *suffix)
{
	auto_free char *whole = xprintf("%s%s", path, suffix);
	struct stat st = { .st_size = 0 };

	if (stat(whole, &st) != 0)
		st.st_size = 0;
	exposition_gauge(out, name, help, st.st_size);
}

static void
add_database(struct buf *out, const struct config *config, struct db *db)
{
	size_t before = out->len;
	struct err err;
	bool up = db != NULL;

	if (up &&
	    (add_jobs(out, db, &err) != 0 ||
		add_sandboxes(out, config, db, &err) != 0 ||
		add_rules(out, db, &err) != 0)) {
		log_warn("metrics: %s", err.text);
		buf_cut(out, before);
		up = false;
	}
	exposition_gauge(out, "inline_database_up",
	    "Whether the database answers.", up);
	add_size(out, "inline_database_bytes", "Size of the database.",
	    config->database, "");
	add_size(out, "inline_database_wal_bytes",
	    "Size of its write-ahead log.", config->database, "-wal");
}

/* There is nothing to add before a worker has counted something. */
static void
add_workers(struct buf *out, const struct config *config)
{
	const char *kinds[JOB_UNKNOWN + 1];
	struct err err;
	const struct tally *tally = tally_read(config, &err);

	if (tally == NULL) {
		log_debug("metrics: %s", err.text);
		return;
	}
	for (int i = 0; i <= JOB_UNKNOWN; i++)
		kinds[i] = commands[i].name;
	tally_tell(out, tally, kinds, JOB_UNKNOWN + 1, clock_wall_ms());
	tally_close(tally);
}

int
chat_metrics_tell(const struct chat_metrics *m, const struct config *config,
    struct db *db, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(HEALTH_METRICS_MAX);

	add_interactions(&text, m);
	add_database(&text, config, db);
	add_workers(&text, config);
	return health_tell_metrics(config, &text, err);
}
