#include "run.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../store/job.h"
#include "task.h"
#include "worker.h"

/* The cell keeps the limit of wall_ms; so much later it is not believed. */
#define OUTSIDE_MS 5000
/* The broker ends a leased cell so much after all else should have. */
#define LEASE_MORE_MS 15000
#define SEND_MS 10000
/* A broker that is restarting is back within a second or two; so is a cell that
 * another worker has died over. */
#define AGAIN_MS 5000
#define AGAIN_PAUSE_MS 100

static bool
end_with(struct run *run, enum run_end end)
{
	run->outcome.end = end;
	lease_close(&run->lease);
	return false;
}

static bool
is_worth_waiting(enum lease_outcome outcome)
{
	return outcome == LEASE_UNREACHABLE || outcome == LEASE_REFUSED_BUSY;
}

static enum lease_outcome
open_lease(struct run *run, const struct lease_request *request, int wait_ms,
    struct err *err)
{
	const struct worker *worker = run->task->worker;
	int64_t now_ms = clock_monotonic_ms();
	int64_t deadline_ms = now_ms + wait_ms;
	int64_t again_until_ms = now_ms + AGAIN_MS;
	enum lease_outcome outcome;

	if (again_until_ms > deadline_ms)
		again_until_ms = deadline_ms;
	for (;;) {
		now_ms = clock_monotonic_ms();
		outcome = lease_open(&run->lease, worker->lease_socket, request,
		    clock_poll_timeout(deadline_ms), err);
		/* One that is ending has let us wait, and then go. */
		if (outcome == LEASE_UNREACHABLE &&
		    clock_monotonic_ms() > now_ms + AGAIN_PAUSE_MS)
			again_until_ms = clock_monotonic_ms() + AGAIN_MS;
		if (!is_worth_waiting(outcome) ||
		    clock_monotonic_ms() + AGAIN_PAUSE_MS > again_until_ms)
			return outcome;
		(void)poll(NULL, 0, AGAIN_PAUSE_MS);
	}
}

bool
run_open(struct run *run, struct task *task, const char *class,
    enum access access, int64_t wall_ms, int wait_ms)
{
	struct lease_request request = {
		.class = class,
		.sandbox = task->sandbox.id,
		.lease_ms = wall_ms + OUTSIDE_MS + LEASE_MORE_MS,
		.access = access,
	};
	struct err err = { 0 };

	*run = (struct run){ .task = task, .lease = LEASE_NONE };
	run->outcome.refusal = open_lease(run, &request, wait_ms, &err);
	if (run->outcome.refusal != LEASE_GRANTED) {
		log_warn("no cell: %s job=%" PRId64 " sandbox=%s", err.text,
		    task->job->id, task->sandbox.id);
		return end_with(run, RUN_REFUSED);
	}
	run->outcome.read_only = run->lease.access == ACCESS_READ;
	memcpy(run->cell_name, run->lease.cell_name, sizeof(run->cell_name));
	run->cell = xmalloc(sizeof(*run->cell));
	cell_init(run->cell, run->lease.cell_fd);
	return true;
}

void
run_close(struct run *run)
{
	lease_close(&run->lease);
	free(run->cell);
	run->cell = NULL;
}

/* ---- one request ---- */

/* What the loop waits for. */
struct wait {
	struct run *run;
	const struct run_sink *sink;
	int64_t since_us;
	int64_t deadline_ms;
	int64_t tick_at_ms; /* INT64_MAX: never */
	int signal_fd;	    /* -1: it is stopping already */
	bool stopping;
};

static void
wait_init(struct wait *wait, struct run *run, int64_t wall_ms,
    const struct run_sink *sink)
{
	int64_t now_ms = clock_monotonic_ms();

	*wait = (struct wait){
		.run = run,
		.sink = sink,
		.since_us = clock_monotonic_us(),
		.deadline_ms = now_ms + wall_ms + OUTSIDE_MS,
		.tick_at_ms = INT64_MAX,
		.signal_fd = run->task->worker->signal_fd,
	};
	if (sink != NULL && sink->tick != NULL)
		wait->tick_at_ms = now_ms + sink->tick_ms;
}

static void
wait_shorten(struct wait *wait)
{
	int64_t stop_at_ms = clock_monotonic_ms() +
	    wait->run->task->worker->config->stop_ms;

	wait->signal_fd = -1;
	if (stop_at_ms < wait->deadline_ms) {
		wait->deadline_ms = stop_at_ms;
		wait->stopping = true;
	}
}

/* True when the cell has sent something, false when the deadline has passed. */
static bool
wait_for_cell(struct wait *wait)
{
	for (;;) {
		int64_t now_ms = clock_monotonic_ms();
		struct pollfd fds[2] = {
			{ .fd = wait->run->lease.cell_fd, .events = POLLIN },
			{ .fd = wait->signal_fd, .events = POLLIN },
		};
		int64_t until_ms = wait->deadline_ms;

		if (now_ms >= wait->deadline_ms)
			return false;
		if (now_ms >= wait->tick_at_ms) {
			wait->sink->tick(wait->sink->arg);
			wait->tick_at_ms = clock_monotonic_ms() +
			    wait->sink->tick_ms;
		}
		if (wait->tick_at_ms < until_ms)
			until_ms = wait->tick_at_ms;
		if (poll(fds, 2, clock_poll_timeout(until_ms)) <= 0)
			continue;
		if (fds[1].revents != 0)
			wait_shorten(wait);
		if (fds[0].revents != 0)
			return true;
	}
}

/* The cell is gone, with what it still had to tell.  Code can have it that the
 * memory limit takes the cell and not the code: that is how it has ended. */
static bool
end_lost(struct run *run, const struct wait *wait)
{
	if (!run->cell->started || run->cell->file_left > 0 ||
	    !lease_is_out_of_memory(run->lease.broker_fd))
		return end_with(run, RUN_BROKEN);
	cell_result_out_of_memory(&run->outcome.result,
	    clock_monotonic_us() - wait->since_us);
	(void)end_with(run, RUN_RESULT);
	return true;
}

static bool
take_events(struct run *run, struct wait *wait, struct err *err)
{
	struct cell_event event;

	while (wait_for_cell(wait)) {
		if (cell_next(run->cell, &event, clock_monotonic_ms() + 1,
			err) < 0)
			return end_lost(run, wait);
		if (event.kind == CELL_RESULT) {
			run->outcome.end = RUN_RESULT;
			run->outcome.result = event.result;
			return true;
		}
		if (wait->sink != NULL && wait->sink->event != NULL)
			wait->sink->event(wait->sink->arg, &event);
	}
	(void)err_set(err, ERR_TIMEOUT, "%s",
	    wait->stopping ? "the worker has to end" : "no result in time");
	return end_with(run, wait->stopping ? RUN_STOPPED : RUN_OVERDUE);
}

bool
run_start(struct task *task)
{
	struct err err = { 0 };
	int result;

	if (task->started)
		return true;
	result = job_start(task->worker->db, task->job->id, task->worker->slot,
	    &err);
	if (result == 0) {
		task->started = true;
		return true;
	}
	task->taken = true;
	log_err("%s job=%" PRId64,
	    result < 0 ? err.text : "the job was taken away before it started",
	    task->job->id);
	return false;
}

static bool
is_too_late(const struct task *task, int64_t wall_ms)
{
	return !task->started &&
	    clock_wall_ms() + wall_ms + OUTSIDE_MS > task->until_ms;
}

bool
run_request(struct run *run, const struct cell_request *request,
    int64_t wall_ms, const struct run_sink *sink)
{
	struct task *task = run->task;
	struct err err = { 0 };
	struct wait wait;
	bool done;

	if (is_too_late(task, wall_ms))
		return end_with(run, RUN_TOO_LATE);
	if (!run_start(task))
		return end_with(run, RUN_TAKEN);
	wait_init(&wait, run, wall_ms, sink);
	if (cell_send(run->cell, request, SEND_MS, &err) < 0)
		done = end_with(run, RUN_BROKEN);
	else
		done = take_events(run, &wait, &err);
	if (!done)
		log_warn("no result: %s job=%" PRId64 " cell=%s", err.text,
		    task->job->id, run->cell_name);
	else if (run->outcome.result.error_text[0] != '\0')
		log_info("the cell says: %s job=%" PRId64,
		    run->outcome.result.error_text, task->job->id);
	return done;
}
