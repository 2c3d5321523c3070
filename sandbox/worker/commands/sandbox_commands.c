/* SPDX-License-Identifier: MIT */
/* The commands for a sandbox, its session and its packages. */
#include "worker/commands/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/db.h"
#include "store/sandbox.h"
#include "store/view.h"
#include "worker/render/render_files.h"

#define CREATE_WAIT_MS 30000
#define REMOVE_WAIT_MS 2000
#define DELETE_WAIT_MS 30000
#define NONE_THEN 2
#define SESSION_WAIT_MS 10000
#define PIP_LOG_MAX (4 * 1024 * 1024)
#define VOLUME_WAIT_MS 60000
#define PACKAGES_MOST 1000
#define RECORD_MAX (1 << 20) /* bytes from which a size is added up */
#define LIST_MAX (1 << 20)

/* ---- /il create ---- */

/* The row comes first, the workspace second.  If a worker dies between them,
 * the next /il create completes the sandbox. */
int
command_make_sandbox(struct task *task, bool *created, struct err *err)
{
	struct worker *worker = task->worker;
	const struct config *config = worker->config;
	int64_t user_id = task->job->user_id;
	const char *id = task->sandbox.id;
	struct err why = { 0 };

	/* a started job counts as one that uses the sandbox */
	if (!task->started && sandbox_give_up(worker->db, user_id, err) < 0)
		return -1;
	if (!run_start(task))
		return 1;
	if (sandbox_create(worker->db, user_id, config->retention_seconds,
		&task->sandbox, created, err) < 0)
		return -1;
	task->run.end = RUN_REFUSED;
	task->run.refusal = lease_command(NULL, worker->lease_socket,
	    &(struct lease_command){ .kind = FRAME_CREATE,
		.sandbox = id,
		.quota_bytes = task->env.config->quota,
		.quota_files = config->files },
	    CREATE_WAIT_MS, &why);
	if (task->run.refusal == REFUSAL_NONE)
		return 0;
	log_warn("no workspace: %s job=%" PRId64, why.text, task->job->id);
	/* A row without a workspace is removed, so that the next command makes
	 * the sandbox anew. */
	if (*created && sandbox_remove(worker->db, id, &why) < 0)
		log_warn("left to the sweeper: %s sandbox=%s", why.text, id);
	else if (*created)
		(void)command_remove_files(worker, id, REMOVE_WAIT_MS);
	command_not_done(task);
	return 1;
}

int
cmd_create(struct task *task, struct err *err)
{
	bool created = false;
	int result = command_make_sandbox(task, &created, err);

	if (result != 0)
		return result;
	render_created(&task->message, &task->sandbox, created,
	    task->env.config);
	task->outcome = created ? "created" : "exists";
	return 0;
}

/* ---- /il delete ---- */

/* Delete the views of this person's answers. */
static int
delete_views(struct task *task, struct err *err)
{
	if (!run_start(task))
		return 0;
	if (view_forget(task->worker->db, task->job->user_id, err) < 0)
		return -1;
	return command_say(task, "forgotten", _(TEXT_FORGOTTEN));
}

/* Mark the sandbox as removed and delete its owner's views, at once. */
static int
remove_rows(struct task *task, struct err *err)
{
	struct db *db = task->worker->db;

	if (db_begin(db, err) != 0)
		return -1;
	if (sandbox_remove(db, task->sandbox.id, err) >= 0 &&
	    view_forget(db, task->job->user_id, err) >= 0 &&
	    db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return -1;
}

/* Find the sandbox that the question was about, not one that was made since.
 * 1: it is gone; NONE_THEN: there was none, and the question was about the
 * views. */
static int
find_asked(struct task *task, struct err *err)
{
	struct db *db = task->worker->db;
	int found = sandbox_find(db, task->job->user_id, &task->sandbox, err);
	struct view view;
	int asked;

	if (found < 0 || task->job->view_id == 0)
		return found;
	asked = view_find(db, task->job->view_id, &view, err);
	if (asked != 0)
		return asked;
	if (view.path[0] == '\0')
		return NONE_THEN;
	return strcmp(view.path, task->sandbox.id) == 0 ? found : 1;
}

/* The sweeper removes a folder that cannot be removed now. */
int
cmd_delete(struct task *task, struct err *err)
{
	int found = find_asked(task, err);
	bool removed;

	if (found < 0)
		return -1;
	if (found == NONE_THEN)
		return delete_views(task, err);
	if (found == 1 || task->sandbox.state != SANDBOX_ACTIVE)
		return command_say(task, "no sandbox", _(TEXT_NO_SANDBOX));
	if (!run_start(task))
		return 0;
	if (remove_rows(task, err) < 0)
		return -1;
	removed = command_remove_files(task->worker, task->sandbox.id,
	    DELETE_WAIT_MS);
	return removed ? command_say(task, "deleted", _(TEXT_DELETED)) :
			 command_say(task, "removing", _(TEXT_REMOVING));
}

/* ---- /il session ---- */

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
	    task->sandbox.id, stop, rest_ms, SESSION_WAIT_MS, &why);
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
	if (config->sessions == 0)
		return command_say(task, "no sessions", _(TEXT_NO_SESSIONS));
	if (session_put(task->worker->db, task->sandbox.id, &session, err) != 0)
		return -1;
	return command_say(task, "session", _(TEXT_SESSION_ON),
	    phrase_span(config->session_seconds).text);
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
	return command_say(task, "stopped", "%s",
	    session.started_at != 0 || rest_ms >= 0 ? _(TEXT_SESSION_OVER) :
						      _(TEXT_NO_SESSION));
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

/* ---- /il pip ---- */

/* Lease a cell; the first packages of a version need a volume, which is made
 * here. */
static bool
open_pip_cell(struct task *task, const struct cell_request *request)
{
	struct err err = { 0 };

	if (run_open(task, "pip", ACCESS_WRITE, request->wall_ms))
		return true;
	if (task->run.refusal != REFUSAL_NO_WORKSPACE)
		return false;
	task->run.refusal = lease_command(NULL, task->worker->lease_socket,
	    &(struct lease_command){ .kind = FRAME_CREATE,
		.sandbox = task->sandbox.id,
		.interpreter = task->version },
	    VOLUME_WAIT_MS, &err);
	if (task->run.refusal == REFUSAL_NONE)
		return run_open(task, "pip", ACCESS_WRITE, request->wall_ms);
	log_warn("no packages: %s job=%" PRId64 " sandbox=%s", err.text,
	    task->job->id, task->sandbox.id);
	return false;
}

int
cmd_pip(struct task *task, struct err *err)
{
	auto_requirements struct requirements words;
	enum requirements_result result = requirements_parse(&words,
	    task->job->text);
	struct cell_request request = {
		.op = OP_PIP,
		.args = (const char *const *)words.words,
		.wall_ms = task->worker->config->pip_timeout_ms,
		.output_max = PIP_LOG_MAX,
	};

	(void)err;
	if (!command_choose_version(task))
		return 0;
	/* only requirements reach pip */
	if (result != REQUIREMENTS_OK) {
		render_bad_requirements(&task->message, result, &words);
		task->outcome = "not a requirement";
		return 0;
	}
	task->tick = command_show_progress;
	collect_init(&task->collect, PIP_LOG_MAX, 0);
	if (open_pip_cell(task, &request))
		(void)run_request(task, &request);
	run_close(task);
	if (command_has_run(task))
		render_pip(&task->message, &task->run, &task->collect.output,
		    words.words, &task->env);
	return 0;
}

/* ---- /il packages ---- */

/* The list comes from a cell of the user's, which can read packages and is
 * warm. */
int
cmd_packages_list(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_PACKAGES,
		.count = PACKAGES_MOST,
		.max_bytes = RECORD_MAX,
		.output_max = LIST_MAX,
	};

	(void)err;
	collect_init(&task->collect, LIST_MAX, 0);
	if (!command_choose_version(task) || !command_do(task, &request))
		return 0;
	render_packages(&task->message, &task->collect.output,
	    &task->run.result, &task->env);
	task->outcome = "listed";
	return 0;
}

/* Store the view of a button that removes unneeded packages; 0: there are none,
 * or no view could be stored. */
static int64_t
offer_rest(struct task *task)
{
	struct err err = { 0 };
	struct view view = { .kind = JOB_PACKAGES_REMOVE,
		.user_id = task->job->user_id };

	if (task->collect.output.len == 0)
		return 0;
	(void)snprintf(view.version, sizeof(view.version), "%s",
	    task->job->version);
	if (view_insert(task->worker->db, &view, &err) < 0) {
		log_err("no button: %s job=%" PRId64, err.text, task->job->id);
		return 0;
	}
	return view.id;
}

/* Code cannot write to packages, so a cell that mounts nothing else removes
 * them.  A button names no package: it removes unneeded ones. */
int
cmd_packages_remove(struct task *task, struct err *err)
{
	const char *name = task->job->view_id == 0 ? task->job->text : NULL;
	struct cell_request request = {
		.op = OP_UNINSTALL,
		.name = name,
		.count = PACKAGES_MOST,
		.output_max = LIST_MAX,
		.wall_ms = FILE_OP_MS,
	};
	const struct cell_result *result = &task->run.result;

	(void)err;
	if (!command_choose_version(task))
		return 0;
	collect_init(&task->collect, LIST_MAX, 0);
	run_once(task, "packages", &request);
	/* nothing was installed for that Python, or not this package */
	if (name != NULL &&
	    ((task->run.end == RUN_REFUSED &&
		 task->run.refusal == REFUSAL_NO_WORKSPACE) ||
		outcome_failed_with(&task->run, ERROR_NOT_FOUND)))
		return command_say(task, "not installed", _(TEXT_NO_PACKAGE),
		    phrase_name(name, PACKAGE_SHOWN).text);
	if (!command_succeeded(task))
		return 0;
	task->outcome = "removed";
	if (name == NULL) {
		render_rest_removed(&task->message, &task->collect.output,
		    result, task->env.config);
		return 0;
	}
	render_uninstalled(&task->message, name, &task->collect.output,
	    offer_rest(task), result, task->env.config);
	return 0;
}
