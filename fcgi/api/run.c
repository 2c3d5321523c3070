#include "run.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "app.h"
#include "reply.h"
#include "../server/http.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

#define SEND_MS 30000

const char *const api_kinds[] = { "eval", "execute", "stream", "bash", NULL };

const char *const api_run_left_out[] = {
	[LEFT_OUT_COUNT] = "too many files",
	[LEFT_OUT_SIZE] = "too large",
	[LEFT_OUT_TOTAL] = "too large together",
	[LEFT_OUT_UNREADABLE] = "not readable",
	[LEFT_OUT_TIME] = "out of time",
	[LEFT_OUT_PATH] = "too deep",
};

/* One try. */
struct attempt {
	struct api_run *run;
	struct http_request *req;
	const struct cell_request *request;
	api_event_fn *event;
	void *arg;
	bool deaf; /* to the client's hanging up */
	const char *cell_name;
	struct conversation c;
};

static int64_t
limits_ms(const struct cell_request *request)
{
	return request->wall_ms + request->collect_ms;
}

static void
take_event(void *arg, const struct cell_event *event)
{
	struct attempt *a = arg;

	a->event(a->arg, event);
	a->c.enough = a->run->enough;
	a->c.hang_up = !a->deaf && a->req->failed;
}

/* Hold the conversation, and say how the run has ended. */
static void
converse(struct attempt *a, int cell_fd, int broker_fd)
{
	static const enum api_end ends[] = {
		[CONVERSATION_RESULT] = API_RESULT,
		[CONVERSATION_DIED] = API_RESULT,
		[CONVERSATION_LOST] = API_LOST,
		[CONVERSATION_OVERDUE] = API_LOST,
		[CONVERSATION_STOPPED] = API_GONE,
	};
	struct pollfd gone = { .fd = http_fd(a->req), .events = POLLRDHUP };
	struct cell_sink sink = { .event = take_event, .arg = a };
	enum conversation_end end;
	struct err err;

	a->c = (struct conversation){
		.cell_fd = cell_fd,
		.broker_fd = broker_fd,
		.sink = &sink,
		.send_ms = SEND_MS,
		.within_ms = limits_ms(a->request),
		.stop = a->deaf ? NULL : &gone,
	};
	end = conversation_hold(&a->c, a->request, &a->run->result, &err);
	a->run->end = ends[end];
	a->run->lost = end != CONVERSATION_RESULT;
	a->run->started = a->run->started || a->c.heard;
	if (end != CONVERSATION_RESULT && end != CONVERSATION_STOPPED)
		log_warn("%s cell=%s", err.text, a->cell_name);
}

/* A run does not take its cell with it, and where it does by using up the
 * memory, that is known.  So this is our fault, or somebody ended the
 * container, and nothing is known of what the run did. */
static void
tell_loss(const struct attempt *a)
{
	unsigned char bytes[API_REFERENCE_LEN / 2];

	if (a->run->end != API_LOST)
		return;
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		log_fatal(1, "getrandom: %m");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(a->run->reference + 2 * i, 3, "%02x", bytes[i]);
	log_err("a run lost its cell reference=%s started=%d cell=%s",
	    a->run->reference, a->run->started, a->cell_name);
}

/* Lease a cell, run in it, and give it back. */
static void
attempt(struct attempt *a, struct api_app *app, const char *interpreter)
{
	struct pollfd gone = { .fd = http_fd(a->req), .events = POLLRDHUP };
	struct lease_request request = {
		.class = "api",
		.sandbox = "",
		.interpreter = interpreter,
		.lease_ms = SEND_MS + limits_ms(a->request) + LIMIT_OUTSIDE_MS +
		    LIMIT_LEASE_MORE_MS,
		.unless = &gone,
	};
	struct api_run *run = a->run;
	int64_t asked_us = clock_monotonic_us();
	int64_t granted_us;
	struct lease lease;
	struct err err;

	run->end = API_GONE;
	if (http_client_gone(a->req))
		return;
	metrics_change(&app->metrics, METRICS_WAITING, 1);
	run->refusal = lease_open_again(&lease, app->lease_socket, &request,
	    config_lease_wait_ms(app->config), INT64_MAX, &err);
	metrics_change(&app->metrics, METRICS_WAITING, -1);
	if (run->refusal != REFUSAL_NONE)
		log_warn("no cell: %s", err.text);
	if (run->refusal == REFUSAL_TIME && http_client_gone(a->req))
		return;
	metrics_lease(&app->metrics, run->refusal);
	granted_us = clock_monotonic_us();
	run->waited_us += granted_us - asked_us;
	if (run->refusal != REFUSAL_NONE) {
		run->end = API_REFUSED;
		return;
	}
	a->cell_name = lease.cell_name;
	metrics_change(&app->metrics, METRICS_RUNNING, 1);
	if (!http_client_gone(a->req))
		converse(a, lease.cell_fd, lease.broker_fd);
	metrics_change(&app->metrics, METRICS_RUNNING, -1);
	tell_loss(a);
	lease_close(&lease);
	run->duration_us = clock_monotonic_us() - granted_us;
}

void
api_run(struct api_run *run, struct api_app *app, struct http_request *req,
    const char *interpreter, const struct cell_request *request,
    api_event_fn *event, void *arg)
{
	struct attempt a = { .run = run,
		.req = req,
		.request = request,
		.event = event,
		.arg = arg };

	*run = (struct api_run){ .end = API_GONE };
	attempt(&a, app, interpreter);
	/* It was gone before it began: nothing of the request has happened. */
	if (run->end == API_LOST && !run->started)
		attempt(&a, app, interpreter);
}

void
api_run_in(struct api_run *run, struct api_app *app, struct http_request *req,
    int cell_fd, int broker_fd, const struct cell_request *request,
    api_event_fn *event, void *arg)
{
	int64_t began_us = clock_monotonic_us();
	struct attempt a = { .run = run,
		.req = req,
		.request = request,
		.event = event,
		.arg = arg,
		.deaf = true,
		.cell_name = "of a session" };

	*run = (struct api_run){ .end = API_GONE };
	metrics_change(&app->metrics, METRICS_RUNNING, 1);
	converse(&a, cell_fd, broker_fd);
	metrics_change(&app->metrics, METRICS_RUNNING, -1);
	tell_loss(&a);
	run->duration_us = clock_monotonic_us() - began_us;
}

void
api_answer_lost(struct http_request *req, const struct api_run *run)
{
	char header[sizeof(API_REFERENCE_HEADER) + API_REFERENCE_LEN];

	(void)snprintf(header, sizeof(header), API_REFERENCE_HEADER,
	    run->reference);
	reply_fail(req, header);
}

void
api_run_count(const struct api_run *run, struct api_app *app,
    enum api_kind kind)
{
	switch (run->end) {
	case API_RESULT:
		metrics_run(&app->metrics, kind, run->result.reason,
		    run->duration_us, run->waited_us);
		break;
	case API_GONE:
		metrics_failed(&app->metrics, kind, METRICS_GONE);
		break;
	case API_REFUSED:
		metrics_failed(&app->metrics, kind, METRICS_REFUSED);
		break;
	case API_LOST:
		metrics_failed(&app->metrics, kind, METRICS_LOST);
		break;
	}
}
