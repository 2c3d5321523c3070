/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../protocol/cancel.h"
#include "../protocol/wake.h"
#include "count.h"
#include "naming.h"
#include "task.h"
#include "worker.h"

#define SEND_MS 10000
/* What is over sooner shows nothing of how it goes on. */
#define TICK_FIRST_MS 2000
#define TICK_MS 3000
/* Nor is there anything to edit before the first response has left. */
#define TICK_AFTER_MS 500

/* While a cell is waited for. */
static void
wait_tick(void *worker)
{
	count_beat(worker);
	count_wait(worker, TICK_MS);
}

/* While a run goes on: the command edits its message, which may take long, and
 * then the worker is back within TICK_MS. */
static void
run_tick(void *arg)
{
	struct task *task = arg;

	count_beat(task->worker);
	if (task->tick != NULL)
		task->tick(task);
	count_wait(task->worker, TICK_MS);
}

/* A cancellation arrived: is it for this job? */
static bool
is_cancelled(void *arg)
{
	struct task *task = arg;

	cancel_heard(task->worker->cancel_fd);
	wait_tick(task->worker);
	task->run.cancelled = cancel_is_asked(task->worker->config,
	    task->job->id);
	return task->run.cancelled;
}

/* Wait for a cell, unless the job is cancelled; when another one is, go on. */
static enum refusal
wait_for_cell(struct task *task, struct lease_request request, int wait_ms,
    struct err *err)
{
	struct pollfd cancel = { .fd = task->worker->cancel_fd,
		.events = POLLIN };
	int64_t until_ms = clock_monotonic_ms() + wait_ms;
	enum refusal refusal;

	/* in the queue already: there need not be one, then */
	if (is_cancelled(task)) {
		(void)err_set(err, ERR_BUSY, "cancelled before it began");
		return REFUSAL_TIME;
	}
	request.unless = &cancel;
	/* not by the connection: each new job would cost us our place */
	request.tick = wait_tick;
	request.tick_arg = task->worker;
	request.tick_ms = TICK_MS;
	do
		refusal = lease_open_again(&task->lease,
		    task->worker->lease_socket, &request,
		    clock_poll_timeout(until_ms), until_ms, err);
	while (refusal == REFUSAL_TIME && poll(&cancel, 1, 0) > 0 &&
	    !is_cancelled(task) && clock_monotonic_ms() < until_ms);
	return refusal;
}

/* The broker holds the lease's time from outside, too: what the requests
 * may take, and what is needed around them. */
bool
run_open(struct task *task, const char *class, enum access access,
    int64_t wall_ms, int wait_ms)
{
	struct lease_request request = {
		.class = class,
		.sandbox = task->sandbox.id,
		.lease_ms = wall_ms + LIMIT_OUTSIDE_MS + LIMIT_LEASE_MORE_MS,
		.access = access,
		.keep = task->keep,
		.interpreter = *task->version != '\0' ? task->version : NULL,
	};
	struct err err = { 0 };

	/* of a cell that a request before it had, for another class */
	naming_keep(task);
	task->run = (struct run_outcome){ .end = RUN_REFUSED };
	task->at_packages = strcmp(class, "user") != 0;
	task->run.refusal = wait_for_cell(task, request, wait_ms, &err);
	count_beat(task->worker);
	if (task->run.cancelled)
		task->run.end = RUN_CANCELLED;
	task->run.read_only = task->lease.access == ACCESS_READ;
	task->kept_ended = task->lease.ended;
	task->run.beside = task->lease.access == ACCESS_LOOK;
	if (task->run.refusal != REFUSAL_NONE)
		log_warn("no cell: %s job=%" PRId64 " sandbox=%s", err.text,
		    task->job->id, task->sandbox.id);
	return task->run.refusal == REFUSAL_NONE;
}

/* From here on the job is never requested again: a worker that takes it
 * over tells that it was interrupted. */
bool
run_start(struct task *task)
{
	struct err err = { 0 };
	int result;

	if (task->started)
		return true;
	result = job_start(task->worker->db, task->job->id, task->worker->slot,
	    &err);
	task->started = result == 0;
	task->taken = result != 0;
	if (task->taken)
		log_err("%s job=%" PRId64,
		    result < 0 ? err.text :
				 "the job was taken away before it started",
		    task->job->id);
	return task->started;
}

static void
take_event(void *arg, const struct cell_event *event)
{
	struct task *task = arg;

	collect_event(&task->collect, event);
}

/* When to show how it goes on for the first time. */
static int64_t
first_tick_ms(const struct task *task)
{
	int64_t first_ms = TICK_FIRST_MS;
	int64_t left_ms;

	if (task->job->held_by >= 0 &&
	    task->worker->config->instant_ms + TICK_AFTER_MS > first_ms)
		first_ms = task->worker->config->instant_ms + TICK_AFTER_MS;
	left_ms = task->job->received_ms + first_ms - clock_wall_ms();
	if (left_ms <= 0)
		return 1;
	return left_ms < first_ms ? left_ms : first_ms; /* was the clock set? */
}

/* Ask the cell, which is there, and wait for what comes of it.  One that its
 * run's memory took with it has told what came of it. */
static enum run_end
hold(struct task *task, const struct cell_request *request, int64_t wall_ms)
{
	const struct worker *worker = task->worker;
	struct pollfd stop = { .fd = worker->signal_fd, .events = POLLIN };
	struct pollfd cancel = { .fd = worker->cancel_fd, .events = POLLIN };
	struct conversation c = {
		.cell_fd = task->lease.cell_fd,
		.broker_fd = task->lease.broker_fd,
		.event = take_event,
		.tick = run_tick,
		.tick_ms = TICK_MS,
		.tick_first_ms = first_tick_ms(task),
		.cancel = &cancel,
		.cancelled = is_cancelled,
		.arg = task,
		.send_ms = SEND_MS,
		.within_ms = wall_ms,
		.stop = &stop,
		.stop_ms = worker->config->stop_ms,
	};
	struct cell_result *result = &task->run.result;
	struct err err = { .text = "the worker has to end" };
	enum conversation_end end;

	task->asked_ms = clock_monotonic_ms();
	count_wait(task->worker, SEND_MS + c.tick_first_ms);
	end = conversation_hold(&c, request, result, &err);
	count_beat(task->worker);
	if (end != CONVERSATION_RESULT)
		log_warn("no result: %s job=%" PRId64 " cell=%s", err.text,
		    task->job->id, task->lease.cell_name);
	else if (result->error_text[0] != '\0')
		log_info("the cell says: %s job=%" PRId64, result->error_text,
		    task->job->id);
	/* such a cell is ended, whatever goes on in it */
	if (end != CONVERSATION_RESULT || c.died)
		lease_close(&task->lease);
	return (enum run_end)end;
}

/* A request whose end nobody could be told of, or wants to be, is not begun. */
bool
run_request(struct task *task, const struct cell_request *request,
    int64_t wall_ms)
{
	if (clock_wall_ms() + wall_ms + LIMIT_OUTSIDE_MS > task->until_ms)
		task->run.end = RUN_TOO_LATE;
	else if (cancel_is_asked(task->worker->config, task->job->id))
		task->run.end = RUN_CANCELLED;
	else if (!run_start(task))
		task->run.end = RUN_TAKEN;
	else
		task->run.end = hold(task, request, wall_ms);
	if (task->run.end == RUN_RESULT)
		naming_heed(task, request);
	return task->run.end == RUN_RESULT;
}

void
run_once(struct task *task, const char *class, enum access access,
    const struct cell_request *request, int wait_ms)
{
	if (run_open(task, class, access, request->wall_ms, wait_ms))
		(void)run_request(task, request, request->wall_ms);
	naming_close(task);
}
