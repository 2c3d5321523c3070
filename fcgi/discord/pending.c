/* SPDX-License-Identifier: MIT */
#include "discord/pending.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "discord/chat_answer.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "locale/locale.h"
#include "store/job.h"

/* Descriptors for all else: new requests, the database, workers. */
#define OTHER_FDS (PENDING_WORKERS + 512)
#define EVENTS 64
#define REPORT_MAX 4000
#define SKEW_MOST_MS 5000
#define FRESH_MS 200 /* of a judgement: a burst asks once */

/* Facts that this process may know, and the verdict of them. */
struct judgement {
	struct condition_facts facts;
	struct condition_verdict verdict;
	struct job_counts counts;
	enum err_code silence; /* why the broker does not answer */
};

static void
judge_facts(const struct pending *p, struct judgement *j)
{
	struct condition_facts *facts = &j->facts;
	struct err err = { 0 };

	*j = (struct judgement){ .silence = ERR_NONE };
	condition_look(facts, p->config);
	facts->broker = lease_status_read(p->config, &facts->status, &err) == 0;
	j->silence = err.code;
	facts->database = *p->db != NULL &&
	    job_count(*p->db, &j->counts, &err) == 0;
	facts->oldest_ms = facts->database ? j->counts.oldest_ms : 0;
	condition_judge(facts, &j->verdict);
}

/* ---- /health ---- */

/* Lines about the parts of the service, and whether all of them are well. */
struct report {
	struct buf *lines;
	bool well;
};

/* Begin the line of a part; one that is not well stands out. */
static void __attribute__((format(printf, 3, 4)))
report_add_part(struct report *r, bool well, const char *fmt, ...)
{
	va_list ap;

	buf_adds(r->lines, well ? "\n" : _("\n**Problem** · "));
	va_start(ap, fmt);
	buf_addv(r->lines, fmt, ap);
	va_end(ap);
	r->well = r->well && well;
}

/* The interpreter's version is known once a cell has reported it. */
static void
add_image(struct report *r, const struct lease_status *status)
{
	auto_buf struct buf name = BUF_INIT(REPORT_MAX);

	buf_adds(&name, "`");
	text_add_clean(&name, status->image_name,
	    text_prefix(status->image_name, strlen(status->image_name), 80));
	buf_adds(&name, "`");
	report_add_part(r, status->image, _("Image %s"), buf_str(&name));
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

/* Where a new sandbox would find no space, most runs can only read. */
static void
add_free_disk(struct report *r, const struct lease_status *status,
    enum condition what)
{
	int64_t kept = status->floor + status->promised;
	bool well = what != CONDITION_DISK && status->free_bytes > kept;

	report_add_part(r, well, _("Free disk: %s"),
	    text_size(status->free_bytes).text);
	if (kept == 0)
		return;
	buf_addf(r->lines, _(", of which %s are reserved"),
	    text_size(kept).text);
	if (!well)
		buf_adds(r->lines, _(": runs can read files, not write them"));
}

/* Lines from il-sandboxd: the engine, the image, its cells, the disk. */
static void
add_broker(struct report *r, const struct lease_status *status,
    enum condition what)
{
	report_add_part(r, status->engine || status->engine_age_ms < 0,
	    _("Docker: %s"),
	    status->engine		  ? _("reachable") :
		status->engine_age_ms < 0 ? _("not asked yet") :
					    _("does not answer"));
	if (status->engine_age_ms >= 0)
		buf_addf(r->lines, _(" (asked %" PRId64 " s ago)"),
		    status->engine_age_ms / 1000);
	if (what == CONDITION_STARTS)
		report_add_part(r, false, _("No sandbox can be started"));
	if (status->image_name[0] != '\0' && status->engine_age_ms >= 0)
		add_image(r, status);
	report_add_part(r, true,
	    _("Sandboxes: %" PRId64 " started, %" PRId64 " in use, %" PRId64
	      " starting, %" PRId64 " requested"),
	    status->cells, status->leased, status->starting, status->waiting);
	add_free_disk(r, status, what);
}

/* Lines about workers and database, and from the database if it answers. */
static void
add_queue(struct report *r, const struct judgement *j, int64_t queue_max)
{
	const struct condition_facts *facts = &j->facts;
	const struct job_counts *counts = &j->counts;

	report_add_part(r, facts->workers.moving > 0,
	    _("Workers: %d, of which %d respond"), facts->workers.alive,
	    facts->workers.moving);
	report_add_part(r, facts->database, _("Database: %s"),
	    facts->database ? _("answers") : _("does not answer"));
	if (!facts->database)
		return;
	report_add_part(r,
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
pending_health(const struct pending *p, int64_t skew_ms)
{
	auto_buf struct buf lines = BUF_INIT(REPORT_MAX);
	auto_buf struct buf text = BUF_INIT(2 * REPORT_MAX);
	struct report report = { .lines = &lines, .well = true };
	struct judgement j;

	judge_facts(p, &j);
	if (j.facts.broker)
		add_broker(&report, &j.facts.status, j.verdict.what);
	else
		report_add_part(&report, false,
		    _("Docker: unknown, il-sandboxd %s"),
		    j.silence == ERR_TIMEOUT ? _("does not answer in time") :
					       _("is not running"));
	add_queue(&report, &j, p->config->queue_max);
	report_add_part(&report,
	    skew_ms > -SKEW_MOST_MS && skew_ms < SKEW_MOST_MS,
	    _("Clock: %+" PRId64 " ms skew against Discord's"), skew_ms);
	report.well = report.well && j.verdict.what == CONDITION_WELL;
	buf_addf(&text, "%s%s\n-# Inline " INLINE_VERSION,
	    report.well ? _("All is well.") : _("Not all is well."),
	    buf_str(&lines));
	return answer_message(buf_str(&text), false);
}

/* ---- in place of "thinking…" ---- */

/* In place of a time: no worker need have heard of the job yet. */
#define NOT_DUE (-1)

/* Returns the condition, which may be FRESH_MS old. */
static enum condition
judge_condition(struct pending *p)
{
	int64_t now_ms = clock_monotonic_ms();
	struct judgement j;

	if (p->judged_ms != 0 && now_ms - p->judged_ms < FRESH_MS)
		return p->condition;
	judge_facts(p, &j);
	if (j.verdict.what != p->condition)
		log_warn("condition=%s %s", condition_words[j.verdict.what],
		    j.verdict.text);
	p->condition = j.verdict.what;
	p->judged_ms = now_ms;
	return p->condition;
}

/* Returns why a job that was made then waits; TEXT_COUNT: no cause is known.
 * Idle workers are woken for a job, and a busy one hears of it in time. */
static enum text_id
find_cause(struct pending *p, int64_t since_ms)
{
	static const bool ours[CONDITIONS] = {
		[CONDITION_BROKER] = true,
		[CONDITION_ENGINE] = true,
		[CONDITION_STARTS] = true,
		[CONDITION_IMAGE] = true,
		[CONDITION_WORKERS] = true,
		[CONDITION_STILL] = true,
	};
	enum condition what = judge_condition(p);
	struct pulse_count count;

	if (what == CONDITION_QUEUE)
		return TEXT_WAITS;
	if (ours[what])
		return TEXT_DEGRADED;
	pulse_look(p->config, &count, NULL);
	return since_ms != NOT_DUE && count.heard_ms < since_ms ?
	    TEXT_DEGRADED :
	    TEXT_COUNT;
}

bool
pending_is_fault(struct pending *p, const struct job *job)
{
	int64_t age_ms = clock_wall_ms() - job->received_ms;
	bool due = p->config->instant_ms > 0 && age_ms >= p->config->instant_ms;

	return find_cause(p, due ? clock_monotonic_ms() - age_ms : NOT_DUE) ==
	    TEXT_DEGRADED;
}

/* The first job that this process makes shows which jobs are another one's. */
static void
note_job(struct pending *p, int64_t job_id)
{
	if (p->first_job == 0)
		p->first_job = job_id;
}

char *
pending_instead(struct pending *p, const struct pending_case *it)
{
	auto_free char *reference = xprintf("%" PRId64, it->job_id);
	auto_buf struct buf text = BUF_INIT(REPORT_MAX);
	bool public = strcmp(it->late, ANSWER_JSON_PUBLIC) == 0;
	enum text_id id;

	note_job(p, it->job_id);
	/* An editor's button says what to do.  Of a press, "@original" is the
	 * message with the buttons, which no notice may replace. */
	if (it->job_id == 0 ||
	    (!public && strcmp(it->late, ANSWER_JSON_PRIVATE) != 0) ||
	    *p->db == NULL)
		return NULL;
	id = find_cause(p, it->due_ms == 0 ? NOT_DUE : it->started_us / 1000);
	if (id == TEXT_COUNT)
		return NULL;
	locale_set(it->locale);
	text_add(&text, id, reference);
	return answer_message(buf_str(&text), public);
}

/* ---- descriptors ---- */

/* Returns how many interactions there are descriptors for. */
static size_t
count_most(void)
{
	const rlim_t most = PENDING_MOST + OTHER_FDS;
	struct rlimit limit = { .rlim_cur = 0 };

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	/* raising what a unit has set may be refused: use what is there */
	if (limit.rlim_cur < most) {
		limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur > most)
		return PENDING_MOST;
	return limit.rlim_cur > OTHER_FDS ? limit.rlim_cur - OTHER_FDS : 0;
}

static int
watch_fd(const struct pending *p, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int
pending_open(struct pending *p, size_t index, struct err *err)
{
	p->count = p->workers = p->most = 0;
	p->listen_fd = -1;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return err_system(err, "epoll_create1");
	p->listen_fd = first_response_listen(p->config, index, err);
	if (p->listen_fd < 0)
		return -1;
	if (watch_fd(p, p->listen_fd) != 0)
		return err_system(err, "epoll_ctl");
	p->most = count_most();
	p->cases = xcalloc(PENDING_MOST, sizeof(*p->cases));
	return 0;
}

/* ---- a pending interaction ---- */

void
pending_count(const struct pending *p, enum interaction_type type,
    enum chat_outcome outcome, int64_t received_ms)
{
	p->counters->interactions_total[type][outcome]++;
	if (outcome >= CHAT_SAID && outcome <= CHAT_DEFERRED)
		histogram_observe(&p->counters
				       ->interaction_response_seconds[outcome],
		    (clock_wall_ms() - received_ms) * 1000);
}

/* Respond, and forget the interaction.  FIRST_RESPONSE_NOBODY: the client had
 * gone. */
static enum first_response
respond(struct pending *p, size_t index, const char *json, const char *outcome,
    enum chat_outcome counts_as)
{
	struct pending_case it = p->cases[index];
	bool sent = !http_client_gone(it.http);

	p->cases[index] = p->cases[--p->count];
	http_answer(it.http, 200, "application/json", NULL, json, strlen(json));
	sent = http_flush(it.http) && sent;
	http_finish(it.http);
	pending_count(p, it.type, sent ? counts_as : CHAT_HUNG_UP,
	    it.received_ms);
	log_info("%s outcome=%s job=%" PRId64 " ms=%.1f", it.label,
	    sent ? outcome : "hung-up", it.job_id,
	    (double)(clock_monotonic_us() - it.started_us) / 1000.0);
	free(it.http);
	free(it.late);
	free(it.label);
	return sent ? FIRST_RESPONSE_SENT : FIRST_RESPONSE_NOBODY;
}

/* Send the late response.  heard: a worker has asked for that, so all is
 * well. */
static enum first_response
respond_late(struct pending *p, size_t index, bool heard)
{
	auto_free char *late = p->cases[index].late;
	auto_free char *instead = heard ? NULL :
					  pending_instead(p, &p->cases[index]);
	enum first_response what;

	p->cases[index].late = NULL;
	what = respond(p, index, instead != NULL ? instead : late,
	    instead != NULL ? "degraded" : "queued", CHAT_DEFERRED);
	return what == FIRST_RESPONSE_SENT ? FIRST_RESPONSE_LATE : what;
}

void
pending_add(struct pending *p, const struct pending_case *it)
{
	note_job(p, it->job_id);
	p->cases[p->count++] = *it;
}

int64_t
pending_due_ms(const struct pending *p)
{
	int64_t due_ms = INT64_MAX;

	for (size_t i = 0; i < p->count; i++)
		if (p->cases[i].due_ms < due_ms)
			due_ms = p->cases[i].due_ms;
	return due_ms;
}

/* ---- workers ---- */

/* Accept all that wait.  A worker beyond the limit edits its message
 * instead. */
static void
accept_workers(struct pending *p)
{
	int fd;

	while ((fd = accept4(p->listen_fd, NULL, NULL,
		    SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (p->workers == PENDING_WORKERS || watch_fd(p, fd) != 0)
			(void)close(fd);
		else
			p->workers++;
	}
}

/* Send the response that a worker has brought for a job, or, where that is "",
 * the late one.  A job that is no longer pending has had its late response,
 * unless it is older than our first job: then another process made it, perhaps
 * one that was killed. */
static enum first_response
respond_to(struct pending *p, int64_t job_id, const char *json)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->cases[i].job_id == job_id)
			return *json != '\0' ?
			    respond(p, i, json, "answered", CHAT_ANSWERED) :
			    respond_late(p, i, true);
	return p->first_job != 0 && job_id >= p->first_job ?
	    FIRST_RESPONSE_LATE :
	    FIRST_RESPONSE_NOBODY;
}

/* Read the one packet of a worker, or its end. */
static void
hear_worker(struct pending *p, int fd)
{
	int64_t job_id = 0;
	const char *json = first_response_receive(fd, p->packet, &job_id);

	if (json != NULL)
		first_response_reply(fd, respond_to(p, job_id, json));
	(void)close(fd);
	p->workers--;
}

void
pending_events(struct pending *p)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(p->epoll_fd, events, EVENTS, 0);
	int64_t now_ms = clock_monotonic_ms();

	for (int i = 0; i < n; i++)
		if (events[i].data.fd == p->listen_fd)
			accept_workers(p);
		else
			hear_worker(p, events[i].data.fd);
	for (size_t i = p->count; i-- > 0;)
		if (p->cases[i].due_ms <= now_ms)
			(void)respond_late(p, i, false);
	http_rest();
}

void
pending_close(struct pending *p)
{
	while (p->count > 0)
		(void)respond_late(p, p->count - 1, false);
	http_rest();
	free(p->cases);
	p->cases = NULL;
	p->most = 0;
	if (p->listen_fd >= 0)
		(void)close(p->listen_fd);
	if (p->epoll_fd >= 0)
		(void)close(p->epoll_fd);
	p->listen_fd = p->epoll_fd = -1;
}
