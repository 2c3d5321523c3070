/* SPDX-License-Identifier: MIT */
#include "discord/chat_health.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "discord/answer.h"
#include "discord/held.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "locale/locale.h"
#include "protocol/condition.h"
#include "store/job.h"

#define REPORT_MAX 4000
#define SKEW_MOST_MS 5000
/* A burst of late answers asks once. */
#define FRESH_MS 200

/* What this process may know; *silence: why the broker does not answer. */
static void
look(const struct config *config, struct db *db, struct condition_facts *facts,
    struct job_counts *counts, enum err_code *silence)
{
	struct err err = { 0 };

	condition_look(facts, config);
	facts->broker = lease_status_read(config, &facts->status, &err) == 0;
	*silence = err.code;
	facts->database = db != NULL && job_count(db, counts, &err) == 0;
	facts->oldest_ms = facts->database ? counts->oldest_ms : 0;
}

/* ---- /health ---- */

/* Lines about the parts of the service, and whether all of them are well. */
struct report {
	struct buf *lines;
	bool well;
};

/* A part that is not well stands out. */
static void __attribute__((format(printf, 3, 4)))
add_line(struct report *r, bool well, const char *fmt, ...)
{
	va_list ap;

	buf_adds(r->lines, well ? "\n" : _("\n**Problem** · "));
	va_start(ap, fmt);
	buf_addv(r->lines, fmt, ap);
	va_end(ap);
	r->well = r->well && well;
}

/* The interpreter's version is known once a cell has told it. */
static void
add_image(struct report *r, const struct lease_status *status)
{
	auto_buf struct buf name = BUF_INIT(REPORT_MAX);

	buf_adds(&name, "`");
	text_add_clean(&name, status->image_name,
	    text_prefix(status->image_name, strlen(status->image_name), 80));
	buf_adds(&name, "`");
	add_line(r, status->image, _("Image %s"), buf_str(&name));
	if (!status->image) {
		buf_adds(r->lines, _(": missing"));
	} else if (status->python[0] != '\0') {
		buf_adds(r->lines, ": Python ");
		text_add_clean(r->lines, status->python,
		    strlen(status->python));
	} else {
		buf_adds(r->lines, _(": present"));
	}
}

/* Where one more sandbox could not be written to, most people only read. */
static void
add_disk(struct report *r, const struct lease_status *status,
    enum condition what)
{
	int64_t kept = status->floor + status->promised;
	bool well = what != CONDITION_DISK && status->free_bytes > kept;

	add_line(r, well, _("Free disk: %s"),
	    text_size(status->free_bytes).text);
	if (kept == 0)
		return;
	buf_addf(r->lines, _(", of which %s are reserved"),
	    text_size(kept).text);
	if (!well)
		buf_adds(r->lines, _(": runs can read files, not write them"));
}

/* What il-sandboxd knows: the engine, the image, its cells, the disk. */
static void
add_broker(struct report *r, const struct lease_status *status,
    enum condition what)
{
	add_line(r, status->engine || status->engine_age_ms < 0,
	    _("Docker: %s"),
	    status->engine		  ? _("reachable") :
		status->engine_age_ms < 0 ? _("not asked yet") :
					    _("does not answer"));
	if (status->engine_age_ms >= 0)
		buf_addf(r->lines, _(" (asked %" PRId64 " s ago)"),
		    status->engine_age_ms / 1000);
	if (what == CONDITION_STARTS)
		add_line(r, false, _("No sandbox can be started"));
	if (status->image_name[0] != '\0' && status->engine_age_ms >= 0)
		add_image(r, status);
	add_line(r, true,
	    _("Sandboxes: %" PRId64 " started, %" PRId64 " in use, %" PRId64
	      " starting, %" PRId64 " requested"),
	    status->cells, status->leased, status->starting, status->waiting);
	add_disk(r, status, what);
}

/* What the database knows, when it answers. */
static void
add_queue(struct report *r, const struct condition_facts *facts,
    const struct job_counts *counts, int64_t queue_max)
{
	add_line(r, facts->workers.moving > 0,
	    _("Workers: %d, of which %d respond"), facts->workers.alive,
	    facts->workers.moving);
	add_line(r, facts->database, _("Database: %s"),
	    facts->database ? _("answers") : _("does not answer"));
	if (!facts->database)
		return;
	add_line(r,
	    counts->queued < queue_max &&
		counts->oldest_ms < CONDITION_QUEUE_MS,
	    _("Queue: %" PRId64 " waiting, %" PRId64 " running"),
	    counts->queued, counts->running);
	if (counts->oldest_ms > 0) {
		auto_free char *age = xprintf("%.1f s",
		    (double)counts->oldest_ms / 1e3);

		buf_addf(r->lines, _(", the oldest for %s"), age);
	}
}

char *
chat_health_answer(struct chat_health *h, int64_t skew_ms)
{
	auto_buf struct buf lines = BUF_INIT(REPORT_MAX);
	auto_buf struct buf text = BUF_INIT(2 * REPORT_MAX);
	struct report report = { .lines = &lines, .well = true };
	struct condition_verdict verdict;
	struct condition_facts facts;
	struct job_counts counts = { 0 };
	enum err_code silence;

	look(h->config, *h->db, &facts, &counts, &silence);
	condition_judge(&facts, &verdict);
	if (facts.broker)
		add_broker(&report, &facts.status, verdict.what);
	else
		add_line(&report, false, _("Docker: unknown, il-sandboxd %s"),
		    silence == ERR_TIMEOUT ? _("does not answer in time") :
					     _("is not running"));
	add_queue(&report, &facts, &counts, h->config->queue_max);
	add_line(&report, skew_ms > -SKEW_MOST_MS && skew_ms < SKEW_MOST_MS,
	    _("Clock: %+" PRId64 " ms skew against Discord's"), skew_ms);
	report.well = report.well && verdict.what == CONDITION_WELL;
	buf_addf(&text, "%s%s\n-# Inline " INLINE_VERSION,
	    report.well ? _("All is well.") : _("Not all is well."),
	    buf_str(&lines));
	return answer_message(buf_str(&text));
}

/* ---- in place of "thinking…" ---- */

/* The workers may not have been told of it yet. */
#define NOT_DUE (-1)

/* How it is, as of a moment ago at most. */
static enum condition
judge(struct chat_health *h)
{
	int64_t now_ms = clock_monotonic_ms();
	struct condition_verdict verdict;
	struct condition_facts facts;
	struct job_counts counts = { 0 };
	enum err_code silence;

	if (h->judged_ms != 0 && now_ms - h->judged_ms < FRESH_MS)
		return h->condition;
	look(h->config, *h->db, &facts, &counts, &silence);
	condition_judge(&facts, &verdict);
	if (verdict.what != h->condition)
		log_warn("condition=%s %s", condition_words[verdict.what],
		    verdict.text);
	h->condition = verdict.what;
	h->judged_ms = now_ms;
	return verdict.what;
}

/* Has nobody heard of a job that was made then?  Workers that rest are woken
 * for it, and one that is busy comes to it in time. */
static bool
is_unheard(const struct chat_health *h, int64_t since_ms)
{
	struct pulse_count count;

	pulse_look(h->config, &count, NULL);
	return count.heard_ms < since_ms;
}

/* Finds why a job waits that was made then; TEXT_COUNT: nothing is known. */
static enum text_id
find_cause(struct chat_health *h, int64_t since_ms)
{
	switch (judge(h)) {
	case CONDITION_BROKER:
	case CONDITION_ENGINE:
	case CONDITION_STARTS:
	case CONDITION_IMAGE:
	case CONDITION_WORKERS:
	case CONDITION_STILL:
		return TEXT_DEGRADED;
	case CONDITION_QUEUE:
		return TEXT_WAITS;
	case CONDITION_WELL:
	case CONDITION_FRONT:
	case CONDITION_API:
	case CONDITION_DATABASE:
	case CONDITION_DISK:
	case CONDITIONS:
		break;
	}
	return since_ms != NOT_DUE && is_unheard(h, since_ms) ? TEXT_DEGRADED :
								TEXT_COUNT;
}

bool
chat_health_is_fault(struct chat_health *h, const struct job *job)
{
	int64_t age_ms = clock_wall_ms() - job->received_ms;
	bool due = h->config->instant_ms > 0 && age_ms >= h->config->instant_ms;

	return find_cause(h, due ? clock_monotonic_ms() - age_ms : NOT_DUE) ==
	    TEXT_DEGRADED;
}

char *
chat_health_instead(void *arg, const struct held_case *it)
{
	struct chat_health *h = arg;
	auto_free char *reference = xprintf("%" PRId64, it->job_id);
	auto_buf struct buf text = BUF_INIT(REPORT_MAX);
	bool public = strcmp(it->late, ANSWER_JSON_PUBLIC) == 0;
	enum text_id id;

	/* an editor's button says what to do; of a press, "@original" is the
	 * message with the buttons, which no notice may replace */
	if (it->job_id == 0 ||
	    (!public && strcmp(it->late, ANSWER_JSON_PRIVATE) != 0) ||
	    *h->db == NULL)
		return NULL;
	id = find_cause(h, it->due_ms == 0 ? NOT_DUE : it->started_us / 1000);
	if (id == TEXT_COUNT)
		return NULL;
	locale_set(it->locale);
	text_add(&text, id, reference);
	return public ? answer_message_public(buf_str(&text)) :
			answer_message(buf_str(&text));
}
