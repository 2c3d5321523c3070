#include "work.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../store/job.h"
#include "commands/command.h"
#include "deliver.h"
#include "task.h"
#include "worker.h"

bool
worker_is_stopping(const struct worker *worker)
{
	struct pollfd stop = { .fd = worker->signal_fd, .events = POLLIN };

	return poll(&stop, 1, 0) > 0;
}

char *
worker_lock_path(const struct config *config, int64_t slot)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "worker/%" PRId64 ".lock", slot);
	return config_state_path(config, name);
}

static void
give_up(struct worker *worker, const struct job *job)
{
	struct err err = { 0 };

	log_warn("too late job=%" PRId64, job->id);
	if (job_undeliverable(worker->db, job->id, "too late", &err) < 0)
		log_err("%s", err.text);
}

static void
do_job(struct worker *worker, struct job *job)
{
	struct task task = {
		.worker = worker,
		.job = job,
		.outcome = "done",
		.until_ms = job->received_ms + TOKEN_LIFE_MS,
	};
	int64_t started_ms = clock_monotonic_ms();

	if (clock_wall_ms() >= task.until_ms) {
		give_up(worker, job);
		return;
	}
	message_init(&task.message);
	command_run(&task);
	if (!task.taken)
		deliver_task(&task);
	log_info("%s: %s job=%" PRId64 " user=%" PRId64 " ms=%" PRId64
		 " waited=%" PRId64,
	    job_kind_name(job->kind), task.outcome, job->id, job->user_id,
	    clock_monotonic_ms() - started_ms,
	    clock_wall_ms() - job->received_ms -
		(clock_monotonic_ms() - started_ms));
	message_release(&task.message);
	free(task.callback);
}

bool
work_next(struct worker *worker)
{
	struct err err = { 0 };
	struct job job;
	int result;

	if (!deliver_note(worker))
		return false;
	result = job_claim(worker->db, worker->slot, &job, &err);

	if (result < 0)
		log_err("%s", err.text);
	if (result != 0)
		return false;
	do_job(worker, &job);
	job_release(&job);
	return true;
}
