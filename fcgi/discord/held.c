/* SPDX-License-Identifier: MIT */
#include "discord/held.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "discord/chat_metrics.h"
#include "server/http.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

/* Descriptors for all else: new requests, the database, workers. */
#define OTHER_FDS (HELD_WORKERS + 512)
#define EVENTS 64

/* As many as there may be descriptors for. */
static size_t
count_most(void)
{
	struct rlimit limit = { .rlim_cur = 0 };

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	if (limit.rlim_max > HELD_MOST + OTHER_FDS)
		limit.rlim_max = HELD_MOST + OTHER_FDS;
	/* what a unit has set already need not be allowed */
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur <= OTHER_FDS)
		return 0;
	return limit.rlim_cur - OTHER_FDS < HELD_MOST ?
	    limit.rlim_cur - OTHER_FDS :
	    HELD_MOST;
}

static int
watch(const struct held *held, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(held->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int
held_open(struct held *held, const struct config *config, size_t index,
    struct err *err)
{
	held->count = held->workers = held->most = 0;
	held->listen_fd = -1;
	held->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (held->epoll_fd < 0)
		return err_system(err, "epoll_create1");
	held->listen_fd = first_response_listen(config, index, err);
	if (held->listen_fd < 0)
		return -1;
	if (watch(held, held->listen_fd) != 0)
		return err_system(err, "epoll_ctl");
	held->most = count_most();
	held->cases = xcalloc(HELD_MOST, sizeof(*held->cases));
	return 0;
}

/* ---- one that is held ---- */

/* Respond, and let it go.  FIRST_RESPONSE_NOBODY: the client had gone. */
static enum first_response
respond(struct held *held, size_t index, const char *json, const char *outcome,
    enum chat_outcome counts_as)
{
	struct held_case it = held->cases[index];
	bool sent = !http_client_gone(it.http);

	held->cases[index] = held->cases[--held->count];
	http_answer(it.http, 200, "application/json", NULL, json, strlen(json));
	sent = http_flush(it.http) && sent;
	http_finish(it.http);
	chat_metrics_count(held->metrics, it.type,
	    sent ? counts_as : CHAT_HUNG_UP, it.received_ms);
	log_info("%s outcome=%s job=%" PRId64 " ms=%.1f", it.label,
	    sent ? outcome : "hung-up", it.job_id,
	    (double)(clock_monotonic_us() - it.started_us) / 1000.0);
	free(it.http);
	free(it.late);
	free(it.label);
	return sent ? FIRST_RESPONSE_SENT : FIRST_RESPONSE_NOBODY;
}

/* What is due; heard: a worker has asked for it, and goes on. */
static enum first_response
respond_late(struct held *held, size_t index, bool heard)
{
	auto_free char *late = held->cases[index].late;
	auto_free char *instead = heard ?
	    NULL :
	    held->instead(held->instead_arg, &held->cases[index]);
	enum first_response what;

	held->cases[index].late = NULL;
	what = respond(held, index, instead != NULL ? instead : late,
	    instead != NULL ? "degraded" : "queued", CHAT_DEFERRED);
	return what == FIRST_RESPONSE_SENT ? FIRST_RESPONSE_LATE : what;
}

void
held_note(struct held *held, int64_t job_id)
{
	if (held->first_job == 0)
		held->first_job = job_id;
}

bool
held_has_room(const struct held *held)
{
	return held->count < held->most;
}

void
held_add(struct held *held, const struct held_case *it)
{
	held->cases[held->count++] = *it;
}

int64_t
held_due_ms(const struct held *held)
{
	int64_t due_ms = INT64_MAX;

	for (size_t i = 0; i < held->count; i++)
		if (held->cases[i].due_ms < due_ms)
			due_ms = held->cases[i].due_ms;
	return due_ms;
}

/* ---- workers ---- */

/* Those that are waiting.  There are fewer slots of workers than places. */
static void
accept_workers(struct held *held)
{
	int fd;

	while ((fd = accept4(held->listen_fd, NULL, NULL,
		    SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (held->workers == HELD_WORKERS || watch(held, fd) != 0)
			(void)close(fd);
		else
			held->workers++;
	}
}

/* The outcome of a job's response, with the one that a worker has brought, or,
 * where that is "", with the due one.  A job that is not held any more has had
 * its late one, unless another process made it before our first job: perhaps
 * one that was killed. */
static enum first_response
respond_to(struct held *held, int64_t job_id, const char *json)
{
	for (size_t i = 0; i < held->count; i++)
		if (held->cases[i].job_id == job_id)
			return *json != '\0' ?
			    respond(held, i, json, "answered", CHAT_ANSWERED) :
			    respond_late(held, i, true);
	return held->first_job != 0 && job_id >= held->first_job ?
	    FIRST_RESPONSE_LATE :
	    FIRST_RESPONSE_NOBODY;
}

/* The one packet of a worker, or its end. */
static void
hear_worker(struct held *held, int fd)
{
	int64_t job_id = 0;
	const char *json = first_response_receive(fd, held->packet, &job_id);

	if (json != NULL)
		first_response_reply(fd, respond_to(held, job_id, json));
	(void)close(fd);
	held->workers--;
}

void
held_events(struct held *held)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(held->epoll_fd, events, EVENTS, 0);
	int64_t now_ms = clock_monotonic_ms();

	for (int i = 0; i < n; i++)
		if (events[i].data.fd == held->listen_fd)
			accept_workers(held);
		else
			hear_worker(held, events[i].data.fd);
	for (size_t i = held->count; i-- > 0;)
		if (held->cases[i].due_ms <= now_ms)
			(void)respond_late(held, i, false);
	http_rest();
}

void
held_close(struct held *held)
{
	while (held->count > 0)
		(void)respond_late(held, held->count - 1, false);
	http_rest();
	free(held->cases);
	held->cases = NULL;
	held->most = 0;
	if (held->listen_fd >= 0)
		(void)close(held->listen_fd);
	if (held->epoll_fd >= 0)
		(void)close(held->epoll_fd);
	held->listen_fd = held->epoll_fd = -1;
}
