#include "run.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../store/job.h"
#include "task.h"
#include "worker.h"

#define SEND_MS 10000

static bool
end_with(struct run *run, enum run_end end)
{
	run->outcome.end = end;
	lease_close(&run->lease);
	return false;
}

bool
run_open(struct run *run, struct task *task, const char *class,
    enum access access, int64_t wall_ms, int wait_ms)
{
	struct lease_request request = {
		.class = class,
		.sandbox = task->sandbox.id,
		.lease_ms = wall_ms + LIMIT_OUTSIDE_MS + LIMIT_LEASE_MORE_MS,
		.access = access,
	};
	struct err err = { 0 };

	*run = (struct run){ .task = task, .lease = LEASE_NONE };
	run->outcome.refusal = lease_open_again(&run->lease,
	    task->worker->lease_socket, &request, wait_ms,
	    clock_monotonic_ms() + wait_ms, &err);
	if (run->outcome.refusal != REFUSAL_NONE) {
		log_warn("no cell: %s job=%" PRId64 " sandbox=%s", err.text,
		    task->job->id, task->sandbox.id);
		return end_with(run, RUN_REFUSED);
	}
	run->outcome.read_only = run->lease.access == ACCESS_READ;
	memcpy(run->cell_name, run->lease.cell_name, sizeof(run->cell_name));
	return true;
}

void
run_close(struct run *run)
{
	lease_close(&run->lease);
}

/* ---- one request ---- */

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
	    clock_wall_ms() + wall_ms + LIMIT_OUTSIDE_MS > task->until_ms;
}

bool
run_request(struct run *run, const struct cell_request *request,
    int64_t wall_ms, const struct cell_sink *sink)
{
	static const enum run_end ends[] = {
		[CONVERSATION_RESULT] = RUN_RESULT,
		[CONVERSATION_DIED] = RUN_RESULT,
		[CONVERSATION_LOST] = RUN_BROKEN,
		[CONVERSATION_OVERDUE] = RUN_OVERDUE,
		[CONVERSATION_STOPPED] = RUN_STOPPED,
	};
	struct task *task = run->task;
	const struct worker *worker = task->worker;
	struct pollfd stop = { .fd = worker->signal_fd, .events = POLLIN };
	struct conversation c = {
		.cell_fd = run->lease.cell_fd,
		.broker_fd = run->lease.broker_fd,
		.sink = sink,
		.send_ms = SEND_MS,
		.within_ms = wall_ms,
		.stop = &stop,
		.stop_ms = worker->config->stop_ms,
	};
	struct cell_result *result = &run->outcome.result;
	struct err err = { .text = "the worker has to end" };
	enum conversation_end end;

	if (is_too_late(task, wall_ms))
		return end_with(run, RUN_TOO_LATE);
	if (!run_start(task))
		return end_with(run, RUN_TAKEN);
	end = conversation_hold(&c, request, result, &err);
	run->outcome.end = ends[end];
	if (end != CONVERSATION_RESULT)
		lease_close(&run->lease);
	if (run->outcome.end != RUN_RESULT)
		log_warn("no result: %s job=%" PRId64 " cell=%s", err.text,
		    task->job->id, run->cell_name);
	else if (result->error_text[0] != '\0')
		log_info("the cell says: %s job=%" PRId64, result->error_text,
		    task->job->id);
	return run->outcome.end == RUN_RESULT;
}
