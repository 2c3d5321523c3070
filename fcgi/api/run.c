/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <poll.h>
#include <stdio.h>

#include "app.h"
#include "reply.h"
#include "../server/http.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"

#define SEND_MS 30000

const char *const api_run_left_out[] = {
	[LEFT_OUT_COUNT] = "too many files",
	[LEFT_OUT_SIZE] = "too large",
	[LEFT_OUT_TOTAL] = "too large together",
	[LEFT_OUT_UNREADABLE] = "not readable",
	[LEFT_OUT_TIME] = "out of time",
	[LEFT_OUT_PATH] = "too deep",
};

/* The longest that the cell may take for all that is asked of it. */
static int64_t
limits_ms(const struct cell_request *request)
{
	return request->wall_ms + request->collect_ms;
}

/* Hold the conversation, and say how the run has ended.  stop: what ends it, or
 * NULL. */
static void
converse(struct api_run *run, int cell_fd, int broker_fd,
    const struct pollfd *stop, const char *cell_name)
{
	static const enum api_end ends[] = {
		[CONVERSATION_RESULT] = API_RESULT,
		[CONVERSATION_DIED] = API_RESULT,
		[CONVERSATION_LOST] = API_LOST,
		[CONVERSATION_OVERDUE] = API_LOST,
		[CONVERSATION_STOPPED] = API_GONE,
	};
	int64_t began_us = clock_monotonic_us();
	enum conversation_end end;
	struct err err;

	run->c.cell_fd = cell_fd;
	run->c.broker_fd = broker_fd;
	run->c.send_ms = SEND_MS;
	run->c.within_ms = limits_ms(run->request);
	run->c.stop = stop;
	metrics_change(&run->app->metrics, METRICS_RUNNING, 1);
	end = conversation_hold(&run->c, run->request, &run->result, &err);
	metrics_change(&run->app->metrics, METRICS_RUNNING, -1);
	run->duration_us = clock_monotonic_us() - began_us;
	/* The contracts know fewer ends; after all but one the cell is of no
	 * more use. */
	run->end = ends[end];
	run->lost = end != CONVERSATION_RESULT;
	if (end != CONVERSATION_RESULT && end != CONVERSATION_STOPPED)
		log_warn("%s cell=%s", err.text, cell_name);
	if (run->end != API_LOST)
		return;
	/* A run does not take its cell with it, and where it does by using up
	 * the memory, that is known.  So this is our fault, or somebody ended
	 * the container, and nothing is known of what the run did. */
	text_random_hex(run->reference, API_REFERENCE_LEN);
	log_err("a run lost its cell reference=%s started=%d cell=%s",
	    run->reference, run->c.heard, cell_name);
}

/* Lease a cell, run in it, and give it back. */
static void
attempt(struct api_run *run, const char *interpreter)
{
	struct metrics *metrics = &run->app->metrics;
	struct pollfd gone = { .fd = http_fd(run->req), .events = POLLRDHUP };
	struct lease_request request = {
		.class = "api",
		.sandbox = "",
		.interpreter = interpreter,
		.lease_ms = SEND_MS + limits_ms(run->request) +
		    LIMIT_OUTSIDE_MS + LIMIT_LEASE_MORE_MS,
		.unless = &gone,
	};
	int64_t asked_us = clock_monotonic_us();
	enum refusal refusal;
	struct lease lease;
	struct err err;

	run->end = API_GONE;
	if (http_client_gone(run->req))
		return;
	/* Wait for a cell, but not longer than the client does. */
	metrics_change(metrics, METRICS_WAITING, 1);
	refusal = lease_open_again(&lease, run->app->lease_socket, &request,
	    config_lease_wait_ms(run->app->config), INT64_MAX, &err);
	metrics_change(metrics, METRICS_WAITING, -1);
	if (refusal != REFUSAL_NONE)
		log_warn("no cell: %s", err.text);
	if (refusal == REFUSAL_TIME && http_client_gone(run->req))
		return;
	metrics_lease(metrics, refusal);
	run->waited_us += clock_monotonic_us() - asked_us;
	if (refusal != REFUSAL_NONE) {
		run->end = API_REFUSED;
		return;
	}
	if (!http_client_gone(run->req))
		converse(run, lease.cell_fd, lease.broker_fd, &gone,
		    lease.cell_name);
	lease_close(&lease);
}

void
api_run(struct api_run *run, const char *interpreter)
{
	attempt(run, interpreter);
	/* It was gone before it began: nothing of the request has happened. */
	if (run->end == API_LOST && !run->c.heard)
		attempt(run, interpreter);
}

void
api_run_in(struct api_run *run, int cell_fd, int broker_fd)
{
	converse(run, cell_fd, broker_fd, NULL, "of a session");
}

void
api_answer_lost(const struct api_run *run)
{
	char header[64];

	(void)snprintf(header, sizeof(header), "Inline-Reference: %s\r\n",
	    run->reference);
	reply_failed(run->req, header);
}

void
api_run_end(const struct api_run *run, enum api_kind kind)
{
	if (run->end == API_REFUSED)
		reply_busy(run->req);
	if (run->end == API_LOST && !run->req->begun)
		api_answer_lost(run);
	metrics_run(&run->app->metrics, kind, run->end, run->result.reason,
	    run->duration_us, run->waited_us);
}
