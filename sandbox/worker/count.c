/* SPDX-License-Identifier: MIT */
#include "worker/count.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "protocol/pulse.h"
#include "worker/task.h"

static_assert(JOB_UNKNOWN < TALLY_KINDS, "each kind has its place");
static_assert((int)TALLY_ROUTE_EDIT == (int)REST_ROUTE_EDIT &&
	(int)TALLY_ROUTE_DELETE == (int)REST_ROUTE_DELETE &&
	(int)TALLY_ROUTE_FETCH == (int)REST_ROUTE_FETCH &&
	(int)TALLY_LIMIT_ROUTE + 1 == (int)REST_LIMIT_ROUTE &&
	(int)TALLY_LIMIT_SHARED + 1 == (int)REST_LIMIT_SHARED &&
	(int)TALLY_LIMIT_GLOBAL + 1 == (int)REST_LIMIT_GLOBAL &&
	(int)TALLY_LIMIT_BLOCK + 1 == (int)REST_LIMIT_BLOCK,
    "what rest tells has its place");

/* Count a try of any call. */
static void
count_exchange(void *arg, const struct rest_exchange *exchange)
{
	struct worker *worker = arg;
	struct tally *tally = worker->tally;

	count_beat(worker);
	if ((int)exchange->route < (int)TALLY_ROUTES)
		tally_request(tally, (enum tally_route)exchange->route,
		    exchange->status, exchange->took_us);
	if (exchange->limit != REST_LIMIT_NONE)
		tally->limits[exchange->limit - 1]++;
	if (exchange->blocked_ms > 0)
		tally->blocked_until_ms = clock_wall_ms() +
		    exchange->blocked_ms;
}

void
count_open(struct worker *worker)
{
	static struct tally unseen;
	struct err err;

	worker->tally = tally_open(worker->config, &err);
	if (worker->tally == NULL) {
		log_warn("nothing is counted: %s", err.text);
		worker->tally = &unseen;
	}
	worker->pulse = pulse_open(worker->config, &err);
	if (worker->pulse == NULL)
		log_warn("nobody sees whether it moves: %s", err.text);
	rest_watch(worker->rest, count_exchange, worker);
	count_beat(worker);
}

void
count_close(const struct worker *worker)
{
	pulse_close(worker->pulse, worker->slot);
}

void
count_wait(struct worker *worker, int64_t wait_ms)
{
	pulse_beat(worker->pulse, worker->slot, wait_ms, false);
}

void
count_beat(struct worker *worker)
{
	count_wait(worker, PULSE_BUSY_MS);
}

void
count_rest(struct worker *worker, int64_t wait_ms)
{
	pulse_beat(worker->pulse, worker->slot, wait_ms > 0 ? wait_ms : 0,
	    true);
}

static enum tally_end
end_of(const struct task *task)
{
	/* reason is 0 after a command without a request, which is done, or has
	 * said why not */
	static const enum tally_end of_reason[] = {
		[0] = TALLY_DONE,
		[REASON_EXIT] = TALLY_FAILED,
		[REASON_SIGNAL] = TALLY_FAILED,
		[REASON_TIME] = TALLY_LIMIT,
		[REASON_MEMORY] = TALLY_LIMIT,
		[REASON_OUTPUT] = TALLY_LIMIT,
		[REASON_ERROR] = TALLY_FAILED,
	};
	static const enum tally_end of_end[] = {
		[RUN_BROKEN] = TALLY_ERROR,
		[RUN_OVERDUE] = TALLY_ERROR,
		[RUN_STOPPED] = TALLY_CANCELLED,
		[RUN_REFUSED] = TALLY_REFUSED,
		[RUN_TOO_LATE] = TALLY_TOO_LATE,
		[RUN_TAKEN] = TALLY_ERROR,
		[RUN_CANCELLED] = TALLY_CANCELLED,
	};
	const struct run_outcome *run = &task->run;

	if (task->our_fault)
		return TALLY_ERROR;
	if (outcome_succeeded(run))
		return TALLY_DONE;
	if (run->cancelled)
		return TALLY_CANCELLED;
	return run->end == RUN_RESULT ? of_reason[run->result.reason] :
					of_end[run->end];
}

void
count_task(const struct task *task, int64_t waited_ms, int64_t took_ms)
{
	struct tally *tally = task->worker->tally;
	enum job_kind kind = task->job->kind;

	if (task->taken)
		return;
	tally->jobs[kind][end_of(task)]++;
	histogram_observe(&tally->waited, waited_ms * 1000);
	histogram_observe(&tally->took[kind], took_ms * 1000);
}
