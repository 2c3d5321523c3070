/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include "base/clock.h"
#include "store/sandbox.h"

#define ASK_MS 10000

/* Read the session's row, and ask the broker for its interpreter; *rest_ms: -1
 * if there is none.  1: the message says why that failed. */
static int
session_ask(struct task *task, struct session *session, bool stop,
    int64_t *rest_ms, struct err *err)
{
	struct err why = { 0 };

	if (!run_start(task))
		return 1;
	if (session_find(task->worker->db, task->sandbox.id, session, err) != 0)
		return -1;
	task->run.end = RUN_REFUSED;
	task->run.refusal = lease_kept(task->worker->lease_socket,
	    task->sandbox.id, stop, rest_ms, ASK_MS, &why);
	if (task->run.refusal == REFUSAL_NONE)
		return 0;
	command_not_done(task);
	return 1;
}

int
cmd_session_start(struct task *task, struct err *err)
{
	const struct config *config = task->worker->config;
	struct session session;

	if (!run_start(task))
		return 0;
	if (session_find(task->worker->db, task->sandbox.id, &session, err) !=
	    0)
		return -1;
	if (session.started_at == 0)
		session.started_at = clock_wall_ms() / 1000;
	if (config->sessions > 0 &&
	    session_put(task->worker->db, task->sandbox.id, &session, err) != 0)
		return -1;
	render_session_start(&task->message, config);
	task->outcome = config->sessions > 0 ? "session" : "no sessions";
	return 0;
}

int
cmd_session_stop(struct task *task, struct err *err)
{
	static const struct session none = { 0 };
	struct session session;
	int64_t rest_ms;
	int result = session_ask(task, &session, true, &rest_ms, err);

	if (result != 0)
		return result;
	if (session_put(task->worker->db, task->sandbox.id, &none, err) != 0)
		return -1;
	render_session_stop(&task->message,
	    session.started_at != 0 || rest_ms >= 0);
	task->outcome = "stopped";
	return 0;
}

int
cmd_session_status(struct task *task, struct err *err)
{
	struct session session;
	int64_t rest_ms;
	int64_t until = 0;
	int result = session_ask(task, &session, false, &rest_ms, err);

	if (result != 0)
		return result;
	if (rest_ms >= 0)
		until = clock_wall_ms() / 1000 - rest_ms / 1000 +
		    task->worker->config->session_seconds;
	render_session_status(&task->message, &session, until);
	task->outcome = "told";
	return 0;
}
