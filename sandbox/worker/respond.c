/* SPDX-License-Identifier: MIT */
#include "respond.h"

#include <inttypes.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../rest/rest.h"
#include "../store/db.h"
#include "../store/job.h"
#include "render/render.h"
#include "task.h"
#include "worker.h"

/* What il-fcgi has to pass a response on, beyond the time that it holds one. */
#define PASS_ON_MS 1000

/* After a first response has left, Discord may not know yet what an edit is to
 * change. */
#define EDIT_AFTER_MS 250

/* "thinking…", for its user alone. */
#define DEFERRAL "{\"type\":5,\"data\":{\"flags\":64}}"

/* Of an answer that a power cut takes back, another one is told: it was
 * interrupted.  So it waits for the disk, but for a first response, which is on
 * its way meanwhile. */
bool
respond_flush(struct worker *worker, int64_t job_id)
{
	struct err err = { 0 };

	if (db_flush(worker->db, &err) == 0)
		return true;
	log_err("%s job=%" PRId64, err.text, job_id);
	return false;
}

/* Must the answer be an edit?  Files come with their text in one.  A server's
 * moderation may refuse an answer for all, and Discord says so of edits alone.
 */
static bool
is_edit(const struct task *task)
{
	return task->editor == NULL &&
	    (task->message.file_count > 0 || task->remove ||
		(task->job->share && !task->apart));
}

/* The answer as the first response, should the front still wait for it, or a
 * deferral before its edit. */
enum first_response
respond_first(struct task *task, bool *lasts, struct err *err)
{
	const struct job *job = task->job;
	auto_free char *path = first_response_path(task->worker->config,
	    job->held_by);
	auto_free char *own = NULL;
	const char *json = task->editor;
	bool later = is_edit(task);
	enum first_response first = FIRST_RESPONSE_NOBODY;
	auto_close int fd = -1;

	/* the front's own deferral of an editor is a message */
	if (later)
		json = job->answer == ANSWER_EDITOR ? DEFERRAL : "";
	if (json == NULL)
		json = own = message_response_json(&task->message, job->answer);
	fd = first_response_give(path, job->id, json, PASS_ON_MS, err);
	*lasts = respond_flush(task->worker, job->id);
	if (fd >= 0)
		first = first_response_outcome(fd, PASS_ON_MS, err);
	return later && first == FIRST_RESPONSE_SENT ? FIRST_RESPONSE_LATE :
						       first;
}

/* The first response leaves now at the latest where we have just asked for it,
 * otherwise when its time is over.  The clock may have been set back. */
void
respond_wait_to_edit(const struct task *task)
{
	const struct worker *worker = task->worker;
	bool held = task->job->held_by >= 0;
	int64_t most_ms = EDIT_AFTER_MS +
	    (held ? worker->config->instant_ms : 0);
	int64_t wait_ms = task->job->received_ms + most_ms - clock_wall_ms();

	if (held && is_edit(task))
		wait_ms = EDIT_AFTER_MS;
	rest_pause(worker->rest, wait_ms < most_ms ? wait_ms : most_ms);
}
