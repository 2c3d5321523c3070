/* SPDX-License-Identifier: MIT */
#include "kept.h"

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../protocol/cell.h"
#include "task.h"
#include "worker.h"

int
kept_before(struct task *task, struct cell_request *request,
    struct session *session, struct err *err)
{
	struct db *db = task->worker->db;
	struct session begun;

	if (session_find(db, task->sandbox.id, session, err) != 0)
		return -1;
	request->keep = task->worker->config->sessions > 0 &&
	    (session->started_at != 0 || task->job->keep);
	task->keep = request->keep || session->kept_at != 0;
	if (!task->keep)
		return 0;
	begun = (struct session){ .started_at = session->started_at,
		.ended = KEPT_BROKEN_OFF };
	return session_put(db, task->sandbox.id, &begun, err);
}

/* It was to be kept, and is not: what of its end its client has seen. */
static enum kept_end
end_of(const struct run_outcome *run)
{
	if (run->end != RUN_RESULT)
		return KEPT_BROKEN_OFF;
	switch (run->result.reason) {
	case REASON_TIME:
		return KEPT_TIME;
	case REASON_OUTPUT:
		return KEPT_OUTPUT;
	case REASON_MEMORY:
		return KEPT_MEMORY;
	case REASON_SIGNAL:
		return KEPT_SIGNAL;
	case REASON_EXIT:
	case REASON_ERROR:
		break;
	}
	return KEPT_EXITED;
}

/* Nothing has begun: all is as it was. */
static bool
has_begun(const struct run_outcome *run)
{
	return run->end != RUN_REFUSED && run->end != RUN_TOO_LATE &&
	    run->end != RUN_CANCELLED && run->end != RUN_TAKEN &&
	    (run->end != RUN_RESULT || run->result.reason != REASON_ERROR);
}

enum kept_end
kept_after(struct task *task, bool keep, const struct session *before)
{
	const struct run_outcome *run = &task->run;
	const struct cell_result *result = &run->result;
	bool known = run->end == RUN_RESULT;
	struct session after = { .started_at = before->started_at };
	enum kept_end why = 0;
	struct err err = { 0 };

	if (!task->keep)
		return 0;
	if (!has_begun(run))
		after = *before;
	else if (known && result->kept)
		after = (struct session){ .started_at = before->started_at,
			.kept_at = clock_wall_ms() / 1000,
			.names = result->kept_names,
			.bytes = result->kept_bytes };
	else if (keep)
		after.ended = end_of(run);
	if (session_put(task->worker->db, task->sandbox.id, &after, &err) != 0)
		log_warn("%s sandbox=%s", err.text, task->sandbox.id);
	if (!has_begun(run) || (known && result->went_on))
		return 0;
	if (before->kept_at != 0)
		why = known && result->ended != 0 ? result->ended :
		    task->kept_ended != 0	  ? task->kept_ended :
						    KEPT_RESTARTED;
	else
		why = (enum kept_end)before->ended;
	return why;
}
