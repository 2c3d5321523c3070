/* SPDX-License-Identifier: MIT */
#include "worker/worker.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "base/basics.h"
#include "protocol/condition.h"
#include "protocol/handover.h"
#include "store/sandbox.h"

#define SEND_MS 10000
/* Shorter runs show no progress. */
#define TICK_FIRST_MS 2000
#define TICK_MS 3000
/* There is no message to edit before the first response has left. */
#define TICK_AFTER_MS 500
#define CANCEL_MS 700 /* for a cancelled run to end */

/* ---- counters ---- */

static_assert((int)JOB_UNKNOWN < (int)COUNTERS_kind, "each kind has its place");
static_assert((int)REST_ROUTE_APPLICATION + 1 == COUNTERS_discord_route &&
	(int)REST_LIMIT_BLOCK + 1 == COUNTERS_discord_limit,
    "counters.def has the order of rest.h");

/* Count a try of any call. */
static void
count_exchange(void *arg, const struct rest_exchange *exchange)
{
	struct worker *worker = arg;
	struct counters *c = worker->counters;

	count_beat(worker);
	c->discord_requests_total[exchange->route]
				 [counters_status(discord_status_words,
				     exchange->status)]++;
	histogram_observe(&c->discord_request_duration_seconds[exchange->route],
	    exchange->took_us);
	c->discord_limits_total[0][exchange->limit]++;
	if (exchange->blocked_ms > 0)
		c->discord_blocked_seconds[0][0] = clock_wall_ms() +
		    exchange->blocked_ms;
}

void
count_open(struct worker *worker)
{
	struct err err;

	worker->counters = counters_open(worker->config, COUNTERS_OF_WORKER);
	worker->pulse = pulse_open(worker->config, &err);
	if (worker->pulse == NULL)
		log_warn("nobody sees whether it moves: %s", err.text);
	rest_watch(worker->rest, count_exchange, worker);
	count_beat(worker);
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

static enum job_end
end_of(const struct task *task)
{
	const struct run_outcome *run = &task->run;

	if (task->our_fault)
		return JOB_END_ERROR;
	if (outcome_succeeded(run))
		return JOB_END_DONE;
	return run->cancelled ? JOB_END_CANCELLED : outcome_kind(run)->counted;
}

void
count_task(const struct task *task, int64_t waited_ms, int64_t took_ms)
{
	struct counters *c = task->worker->counters;
	enum job_kind kind = task->job->kind;

	if (task->taken)
		return;
	c->jobs_total[kind][end_of(task)]++;
	histogram_observe(&c->job_wait_seconds[0], waited_ms * 1000);
	histogram_observe(&c->job_duration_seconds[kind], took_ms * 1000);
}

/* ---- names ---- */

/*
 * The names in a sandbox, for il-fcgi to suggest (store/sandbox.h).  They are
 * asked of the cell that a command has leased, after its answer has left, and
 * only when the command may have changed them: most runs do not.
 */

/* Names that the cell has not listed by then are asked for another time. */
#define TELL_MS 1000
#define TELL_SEND_MS 100
#define PYTHON_MAX 32
/* Each name has a letter before it and a NUL behind. */
#define NAMED_MAX (NAMES_MOST * (NAMES_BYTES + 2) + PYTHON_MAX + 2)

/* May a request that has a result have changed names? */
static bool
may_rename(const struct task *task, const struct cell_request *request)
{
	const struct cell_result *result = &task->run.result;

	/* a run may make directories and remove files: their number changes
	 * then */
	if (request->op == OP_RUN)
		return task->collect.images + task->collect.others > 0 ||
		    (result->used_files >= 0 &&
			result->used_files != task->sandbox.named_files);
	return request->op == OP_WRITE || request->op == OP_REMOVE ||
	    request->op == OP_PIP || request->op == OP_UNINSTALL;
}

/* Names that a cell has listed; their texts are in its output. */
struct named {
	struct name list[NAMES_MOST];
	size_t count;
	const char *python;
};

static void
run_collect(void *arg, const struct cell_event *event)
{
	struct task *task = arg;

	collect_event(&task->collect, event);
}

/* Parse the names of the list that are fit to be stored.  Entries after a name
 * belong to it (a package's version, its size). */
static void
read_names(struct named *named, const struct buf *text, bool packages)
{
	const char *at = buf_str(text);
	const char *end = at + text->len;
	size_t len;

	*named = (struct named){ .python = "" };
	for (; at < end; at += strlen(at) + 1) {
		enum name_kind kind = *at == 'd' ? NAME_DIRECTORY :
		    *at == 'f'			 ? NAME_FILE :
						   NAME_PACKAGE;
		bool is_name = packages ? *at == 'p' : kind != NAME_PACKAGE;

		len = *at != '\0' ? strlen(at + 1) : 0;
		if (*at == 'v' && packages && len <= PYTHON_MAX &&
		    strspn(at + 1, "0123456789.") == len)
			named->python = at + 1;
		if (is_name && named->count < NAMES_MOST &&
		    name_is_fit(at + 1, len))
			named->list[named->count++] = (struct name){ kind,
				at + 1 };
	}
}

/* Send a request to the leased cell, which c says how to wait for. */
static enum run_end
run_hold(struct task *task, struct conversation *c,
    const struct cell_request *request, struct cell_result *result,
    struct err *err)
{
	struct pollfd stop = { .fd = task->worker->signal_fd,
		.events = POLLIN };

	c->cell_fd = task->lease.cell_fd;
	c->broker_fd = task->lease.broker_fd;
	c->event = run_collect;
	c->arg = task;
	c->stop = &stop;
	*err = (struct err){ .text = "the worker has to end" };
	return conversation_hold(c, request, result, err);
}

/* False: the cell did not list its names. */
static bool
ask_names(struct task *task)
{
	const struct cell_request request = {
		.op = task->at_packages ? OP_PACKAGES : OP_NAMES,
		.count = NAMES_MOST,
		.max_bytes = task->at_packages ? 0 : NAMES_BYTES,
		.output_max = NAMED_MAX,
		.wall_ms = TELL_MS,
	};
	struct conversation c = {
		.send_ms = TELL_SEND_MS,
		/* names are not worth the default time beyond the limit */
		.within_ms = TELL_MS - LIMIT_OUTSIDE_MS,
	};
	struct cell_result result = { 0 };
	struct err err;
	enum run_end end = run_hold(task, &c, &request, &result, &err);

	if (end == RUN_RESULT && result.reason == REASON_EXIT)
		return true;
	log_warn("no names: %s sandbox=%s",
	    end == RUN_RESULT ? result.error_text : err.text, task->sandbox.id);
	return false;
}

void
run_close(struct task *task)
{
	if (!task->renamed)
		lease_close(&task->lease);
}

void
run_keep_names(struct task *task)
{
	/* the results of the command's own requests stay as they are */
	struct collect results = task->collect;
	struct named named;
	struct err err = { 0 };
	int64_t files = task->at_packages ? -1 : task->run.result.used_files;
	bool listed;

	collect_init(&task->collect, NAMED_MAX, 0);
	listed = task->lease.cell_fd >= 0 && task->renamed && ask_names(task);
	lease_close(&task->lease);
	task->renamed = false;
	if (listed) {
		read_names(&named, &task->collect.output, task->at_packages);
		if (names_keep(task->worker->db, task->sandbox.id, named.python,
			files, named.list, named.count, &err) < 0)
			log_warn("%s sandbox=%s", err.text, task->sandbox.id);
	}
	collect_release(&task->collect);
	task->collect = results;
}

/* ---- a lease ---- */

/* Beat while a cell is waited for. */
static void
wait_tick(void *worker)
{
	count_beat(worker);
	count_wait(worker, TICK_MS);
}

/* Beat during a run, and let the command edit its message, which may take
 * long. */
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
run_is_cancelled(void *arg)
{
	struct task *task = arg;

	cancel_heard(task->worker->cancel_fd);
	wait_tick(task->worker);
	task->run.cancelled = cancel_is_asked(task->worker->config,
	    task->job->id);
	return task->run.cancelled;
}

/* Wait for a cell until the job is cancelled. */
static enum refusal
run_wait_for_cell(struct task *task, struct lease_request request,
    struct err *err)
{
	struct pollfd cancel = { .fd = task->worker->cancel_fd,
		.events = POLLIN };
	int64_t until_ms = clock_monotonic_ms() +
	    config_lease_wait_ms(task->worker->config);
	enum refusal refusal;

	/* a job that was cancelled in the queue needs no cell */
	if (run_is_cancelled(task)) {
		(void)err_set(err, ERR_BUSY, "cancelled before it began");
		return REFUSAL_TIME;
	}
	request.unless = &cancel;
	/* the pulse keeps the connection: a new one would lose its place in the
	 * queue */
	request.tick = wait_tick;
	request.tick_arg = task->worker;
	request.tick_ms = TICK_MS;
	do
		refusal = lease_open_again(&task->lease,
		    task->worker->lease_socket, &request,
		    clock_poll_timeout(until_ms), until_ms, err);
	while (refusal == REFUSAL_TIME && poll(&cancel, 1, 0) > 0 &&
	    !run_is_cancelled(task) && clock_monotonic_ms() < until_ms);
	return refusal;
}

/* The broker ends the lease from outside, too, after the time of the requests
 * and that around them. */
bool
run_open(struct task *task, const char *class, enum access access,
    int64_t wall_ms)
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

	/* a cell of another class may be leased from an earlier request */
	run_keep_names(task);
	task->run = (struct run_outcome){ .end = RUN_REFUSED };
	task->at_packages = strcmp(class, "user") != 0;
	task->run.refusal = run_wait_for_cell(task, request, &err);
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

/* ---- a request ---- */

/* From here on the job never runs again: a worker that takes it over reports
 * that it was interrupted. */
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

/* The time until progress is shown for the first time. */
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
	return left_ms < first_ms ? left_ms : first_ms; /* the clock may have
							 * been set */
}

/* Send the request to the leased cell, and wait for its result.  A cell that
 * died of a lack of memory may have sent one. */
static enum run_end
run_converse(struct task *task, const struct cell_request *request)
{
	const struct worker *worker = task->worker;
	struct pollfd cancel = { .fd = worker->cancel_fd, .events = POLLIN };
	struct conversation c = {
		.tick = run_tick,
		.tick_ms = TICK_MS,
		.tick_first_ms = first_tick_ms(task),
		.cancel = &cancel,
		.cancel_ms = CANCEL_MS,
		.cancelled = run_is_cancelled,
		.send_ms = SEND_MS,
		.within_ms = request->wall_ms,
		.stop_ms = worker->config->stop_ms,
	};
	struct cell_result *result = &task->run.result;
	struct err err;
	enum run_end end;

	task->asked_ms = clock_monotonic_ms();
	count_wait(task->worker, SEND_MS + c.tick_first_ms);
	end = run_hold(task, &c, request, result, &err);
	count_beat(task->worker);
	if (end != RUN_RESULT)
		log_warn("no result: %s job=%" PRId64 " cell=%s", err.text,
		    task->job->id, task->lease.cell_name);
	else if (result->error_text[0] != '\0')
		log_info("the cell says: %s job=%" PRId64, result->error_text,
		    task->job->id);
	/* closing the lease ends such a cell */
	if (end != RUN_RESULT || c.died)
		lease_close(&task->lease);
	return end;
}

/* A request is not begun if its end would come too late for an answer, or if
 * the job was cancelled. */
bool
run_request(struct task *task, const struct cell_request *request)
{
	if (clock_wall_ms() + request->wall_ms + LIMIT_OUTSIDE_MS >
	    task->until_ms)
		task->run.end = RUN_TOO_LATE;
	else if (cancel_is_asked(task->worker->config, task->job->id))
		task->run.end = RUN_CANCELLED;
	else if (!run_start(task))
		task->run.end = RUN_TAKEN;
	else
		task->run.end = run_converse(task, request);
	if (task->run.end == RUN_RESULT && may_rename(task, request))
		task->renamed = true;
	return task->run.end == RUN_RESULT;
}

void
run_once(struct task *task, const char *class,
    const struct cell_request *request)
{
	if (run_open(task, class, ACCESS_TIDY, request->wall_ms))
		(void)run_request(task, request);
	run_close(task);
}
