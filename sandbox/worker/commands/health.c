/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <inttypes.h>

#include "../../base/log.h"
#include "../../protocol/lease_status.h"

#define STATUS_WAIT_MS 3000
#define DISCORD_EPOCH_MS INT64_C(1420070400000)

/* Each part is asked with a deadline of its own; that one of them does not
 * answer is what people want to know. */
int
cmd_health(struct task *task, struct err *err)
{
	const struct worker *worker = task->worker;
	const struct job *job = task->job;
	struct lease_status status = { 0 };
	struct job_counts counts = { 0 };
	const char *broker_error = NULL;
	bool counted;
	enum refusal outcome = lease_status(worker->lease_socket, &status,
	    STATUS_WAIT_MS, err);

	if (outcome != REFUSAL_NONE) {
		log_warn("%s job=%" PRId64, err->text, job->id);
		broker_error = outcome == REFUSAL_TIME ?
		    _("does not answer in time") :
		    _("is not running");
	}
	counted = job_count(worker->db, &counts, err) == 0;
	if (!counted)
		log_err("%s job=%" PRId64, err->text, job->id);
	/* this job itself does not count */
	if (counts.running > 0)
		counts.running--;
	render_health(&task->message, broker_error, &status,
	    counted ? &counts : NULL, worker->config->queue_max,
	    job->received_ms -
		((job->interaction_id >> 22) + DISCORD_EPOCH_MS));
	task->outcome = outcome == REFUSAL_NONE ? "told" : "no broker";
	return 0;
}
