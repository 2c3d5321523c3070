#include "run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "app.h"
#include "reply.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

#define SEND_MS 30000
/* The cell keeps the limit of wall_ms and of collect_ms; so much later it is
 * not believed. */
#define OUTSIDE_MS 5000
/* The broker ends a leased cell so much after all else should have. */
#define LEASE_MORE_MS 15000
/* A broker that restarts is back within a second or two. */
#define AGAIN_MS 5000
#define AGAIN_PAUSE_MS 100

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
	struct lease lease;
	int cell_fd;
	int broker_fd;
	const char *cell_name;
	bool deaf; /* to the client's hanging up */
	struct cell *cell;
	int64_t deadline_ms;
};

static enum lease_outcome
open_lease(struct attempt *a, struct api_app *app,
    const struct lease_request *request)
{
	struct pollfd gone = { .fd = http_fd(a->req), .events = POLLRDHUP };
	int wait_ms = config_lease_wait_ms(app->config);
	int64_t again_until_ms = clock_monotonic_ms() + AGAIN_MS;
	struct lease_request asked = *request;
	enum lease_outcome outcome;
	struct err err = { 0 };

	asked.unless = &gone;
	for (;;) {
		int64_t began_ms = clock_monotonic_ms();

		outcome = lease_open(&a->lease, app->lease_socket, &asked,
		    wait_ms, &err);
		/* One that is ending has let us wait, and then go. */
		if (clock_monotonic_ms() > began_ms + AGAIN_PAUSE_MS)
			again_until_ms = clock_monotonic_ms() + AGAIN_MS;
		if (outcome != LEASE_UNREACHABLE ||
		    clock_monotonic_ms() > again_until_ms ||
		    http_client_gone(a->req))
			break;
		(void)poll(&gone, 1, AGAIN_PAUSE_MS);
	}
	if (outcome != LEASE_GRANTED)
		log_warn("no cell: %s", err.text);
	return outcome;
}

/* Wait for the cell: true when there is something. */
static bool
wait_for_cell(struct attempt *a)
{
	for (;;) {
		struct pollfd p[2] = {
			{ .fd = a->cell_fd, .events = POLLIN },
			{ .fd = a->deaf ? -1 : http_fd(a->req),
			    .events = POLLRDHUP },
		};
		int n = poll(p, 2, clock_poll_timeout(a->deadline_ms));

		if (n < 0 && errno == EINTR)
			continue;
		if (p[1].revents != 0 || (!a->deaf && a->req->failed)) {
			a->run->end = API_GONE;
			return false;
		}
		if (n <= 0) {
			log_warn("no result in time cell=%s", a->cell_name);
			a->run->end = API_LOST;
			return false;
		}
		return true;
	}
}

/* The cell is gone, with what it still had to tell.  Code can have it that the
 * memory limit takes the cell and not the code: that is how it has ended. */
static void
end_lost(struct attempt *a, int64_t since_us)
{
	a->run->lost = true;
	a->run->end = API_LOST;
	if (!a->cell->started || a->cell->file_left > 0 ||
	    !lease_is_out_of_memory(a->broker_fd))
		return;
	a->run->end = API_RESULT;
	cell_result_out_of_memory(&a->run->result,
	    clock_monotonic_us() - since_us);
}

static void
take_events(struct attempt *a, api_event_fn *event, void *arg)
{
	int64_t since_us = clock_monotonic_us();
	struct cell_event e;
	struct err err;
	bool told = false;

	while (wait_for_cell(a)) {
		if (cell_next(a->cell, &e, clock_monotonic_ms() + 1, &err) !=
		    0) {
			log_warn("%s cell=%s", err.text, a->cell_name);
			end_lost(a, since_us);
			return;
		}
		a->run->started = a->run->started || e.kind != CELL_QUIET;
		if (e.kind == CELL_RESULT) {
			a->run->end = API_RESULT;
			a->run->result = e.result;
			return;
		}
		if (e.kind != CELL_QUIET)
			event(arg, &e);
		if (a->run->enough && !told)
			cell_enough(a->cell);
		told = a->run->enough;
	}
}

static void
converse(struct attempt *a, const struct cell_request *request,
    api_event_fn *event, void *arg)
{
	struct err err;

	a->cell = xmalloc(sizeof(*a->cell));
	cell_init(a->cell, a->cell_fd);
	a->deadline_ms = clock_monotonic_ms() + SEND_MS + request->wall_ms +
	    request->collect_ms + OUTSIDE_MS;
	if (cell_send(a->cell, request, SEND_MS, &err) != 0) {
		log_warn("%s cell=%s", err.text, a->cell_name);
		a->run->end = API_LOST;
	} else {
		a->deadline_ms = clock_monotonic_ms() + request->wall_ms +
		    request->collect_ms + OUTSIDE_MS;
		take_events(a, event, arg);
	}
	free(a->cell);
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

static void
attempt(struct api_run *run, struct api_app *app, struct http_request *req,
    const struct lease_request *lease, const struct cell_request *request,
    api_event_fn *event, void *arg)
{
	struct attempt a = { .run = run, .req = req, .lease = LEASE_NONE };
	int64_t asked_us = clock_monotonic_us();
	int64_t granted_us;

	run->end = API_GONE;
	if (http_client_gone(req))
		return;
	metrics_change(&app->metrics, METRICS_WAITING, 1);
	run->refusal = open_lease(&a, app, lease);
	metrics_change(&app->metrics, METRICS_WAITING, -1);
	if (run->refusal == LEASE_TIMED_OUT && http_client_gone(req))
		return;
	metrics_lease(&app->metrics, run->refusal);
	granted_us = clock_monotonic_us();
	run->waited_us += granted_us - asked_us;
	if (run->refusal != LEASE_GRANTED) {
		run->end = API_REFUSED;
		return;
	}
	a.cell_fd = a.lease.cell_fd;
	a.broker_fd = a.lease.broker_fd;
	a.cell_name = a.lease.cell_name;
	metrics_change(&app->metrics, METRICS_RUNNING, 1);
	if (!http_client_gone(req))
		converse(&a, request, event, arg);
	metrics_change(&app->metrics, METRICS_RUNNING, -1);
	tell_loss(&a);
	lease_close(&a.lease);
	run->duration_us = clock_monotonic_us() - granted_us;
}

void
api_run(struct api_run *run, struct api_app *app, struct http_request *req,
    const char *interpreter, const struct cell_request *request,
    api_event_fn *event, void *arg)
{
	struct lease_request lease = {
		.class = "api",
		.sandbox = "",
		.interpreter = interpreter,
		.lease_ms = SEND_MS + request->wall_ms + request->collect_ms +
		    OUTSIDE_MS + LEASE_MORE_MS,
	};

	*run = (struct api_run){ .end = API_GONE };
	attempt(run, app, req, &lease, request, event, arg);
	/* It was gone before it began: nothing of the request has happened. */
	if (run->end == API_LOST && !run->started)
		attempt(run, app, req, &lease, request, event, arg);
}

void
api_run_in(struct api_run *run, struct api_app *app, struct http_request *req,
    int cell_fd, int broker_fd, const struct cell_request *request,
    api_event_fn *event, void *arg)
{
	int64_t began_us = clock_monotonic_us();
	struct attempt a = { .run = run,
		.req = req,
		.lease = LEASE_NONE,
		.cell_fd = cell_fd,
		.broker_fd = broker_fd,
		.deaf = true,
		.cell_name = "of a session" };

	*run = (struct api_run){ .end = API_GONE };
	metrics_change(&app->metrics, METRICS_RUNNING, 1);
	converse(&a, request, event, arg);
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
