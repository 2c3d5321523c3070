/* SPDX-License-Identifier: MIT */
/* The commands for a sandbox, its session and its packages. */
#include "worker/commands/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/basics.h"
#include "store/db.h"
#include "store/sandbox.h"
#include "store/job.h"
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
bool
command_make_sandbox(struct task *task, bool *created)
{
	struct worker *worker = task->worker;
	const struct config *config = worker->config;
	int64_t user_id = task->job->user_id;
	const char *id = task->sandbox.id;
	struct err why = { 0 };

	/* a started job counts as one that uses the sandbox */
	if ((!task->started &&
		sandbox_give_up(worker->db, user_id, &task->err) < 0) ||
	    !run_start(task) ||
	    sandbox_create(worker->db, user_id, config->retention_seconds,
		&task->sandbox, created, &task->err) < 0)
		return false;
	task->run.end = RUN_REFUSED;
	task->run.refusal = lease_command(NULL, worker->lease_socket,
	    &(struct lease_request){ .kind = FRAME_CREATE,
		.sandbox = id,
		.quota_bytes = task->env.config->quota,
		.quota_files = config->files },
	    CREATE_WAIT_MS, &why);
	if (task->run.refusal == REFUSAL_NONE)
		return true;
	log_warn("no workspace: %s job=%" PRId64, why.text, task->job->id);
	/* A row without a workspace is removed, so that the next command makes
	 * the sandbox anew. */
	if (*created && sandbox_remove(worker->db, id, &why) < 0)
		log_warn("left to the sweeper: %s sandbox=%s", why.text, id);
	else if (*created)
		(void)command_remove_files(worker, id, REMOVE_WAIT_MS);
	command_not_done(task);
	return false;
}

bool
cmd_create(struct task *task)
{
	bool created = false;

	if (!command_make_sandbox(task, &created))
		return false;
	render_created(&task->env, &task->sandbox, created);
	task->outcome = created ? "created" : "exists";
	return true;
}

/* ---- /il delete ---- */

/* Mark the sandbox as removed, if there is one, and delete its owner's views,
 * at once. */
static bool
remove_rows(struct task *task, bool sandbox)
{
	struct db *db = task->worker->db;
	struct err *err = &task->err;

	if (db_begin(db, err) != 0)
		return false;
	return db_end(db,
		   (sandbox && sandbox_remove(db, task->sandbox.id, err) < 0) ||
			   view_forget(db, task->job->user_id, err) < 0 ?
		       -1 :
		       0,
		   err) == 0;
}

/* Find the sandbox that the question was about, not one that was made since.
 * 1: it is gone; -1: an error; NONE_THEN: there was none, and the question was
 * about the views. */
static int
find_asked(struct task *task)
{
	struct db *db = task->worker->db;
	int found = sandbox_find(db, task->job->user_id, &task->sandbox,
	    &task->err);
	struct view view;
	int asked;

	if (found < 0 || task->job->view_id == 0)
		return found;
	asked = view_find(db, task->job->view_id, &view, NULL, &task->err);
	if (asked != 0)
		return asked;
	if (view.path[0] == '\0')
		return NONE_THEN;
	return strcmp(view.path, task->sandbox.id) == 0 ? found : 1;
}

/* The sweeper removes a folder that cannot be removed now. */
bool
cmd_delete(struct task *task)
{
	int found = find_asked(task);

	if (found == 1 || (found == 0 && task->sandbox.state != SANDBOX_ACTIVE))
		return command_say(task, SAY_NO_SANDBOX, NULL);
	if (found < 0 || !run_start(task) || !remove_rows(task, found == 0))
		return false;
	if (found == NONE_THEN)
		return command_say(task, SAY_FORGOTTEN, NULL);
	return command_remove_files(task->worker, task->sandbox.id,
		   DELETE_WAIT_MS) ?
	    command_say(task, SAY_DELETED, NULL) :
	    command_say(task, SAY_REMOVING, NULL);
}

/* ---- /il session ---- */

/* Start the job, and read the session's row. */
static bool
session_read(struct task *task, struct session *session)
{
	return run_start(task) &&
	    session_find(task->worker->db, task->sandbox.id, session,
		&task->err) == 0;
}

static bool
session_store(struct task *task, const struct session *session)
{
	return session_put(task->worker->db, task->sandbox.id, session,
		   &task->err) == 0;
}

/* Read the session's row, and ask the broker for its interpreter; *rest_ms: -1
 * if there is none. */
static bool
session_ask(struct task *task, struct session *session, bool stop,
    int64_t *rest_ms)
{
	struct err why = { 0 };

	if (!session_read(task, session))
		return false;
	task->run.end = RUN_REFUSED;
	task->run.refusal = lease_kept(task->worker->lease_socket,
	    task->sandbox.id, stop, rest_ms, SESSION_WAIT_MS, &why);
	if (task->run.refusal != REFUSAL_NONE)
		command_not_done(task);
	return task->run.refusal == REFUSAL_NONE;
}

bool
cmd_session_start(struct task *task)
{
	const struct config *config = task->worker->config;
	struct session session;

	if (!session_read(task, &session))
		return false;
	if (session.started_at == 0)
		session.started_at = clock_wall_ms() / 1000;
	if (config->sessions == 0)
		return command_say(task, SAY_NO_SESSIONS, NULL);
	return session_store(task, &session) &&
	    command_say(task, SAY_SESSION_ON,
		phrase_span(config->session_seconds).text, NULL);
}

bool
cmd_session_stop(struct task *task)
{
	static const struct session none = { 0 };
	struct session session;
	int64_t rest_ms;

	return session_ask(task, &session, true, &rest_ms) &&
	    session_store(task, &none) &&
	    command_say(task,
		session.started_at != 0 || rest_ms >= 0 ? SAY_SESSION_OVER :
							  SAY_NO_SESSION,
		NULL);
}

bool
cmd_session_status(struct task *task)
{
	struct session session;
	int64_t rest_ms;
	int64_t until = 0;

	if (!session_ask(task, &session, false, &rest_ms))
		return false;
	if (rest_ms >= 0)
		until = clock_wall_ms() / 1000 - rest_ms / 1000 +
		    task->worker->config->session_seconds;
	render_session_status(&task->message, &session, until);
	task->outcome = "told";
	return true;
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
	    &(struct lease_request){ .kind = FRAME_CREATE,
		.sandbox = task->sandbox.id,
		.interpreter = task->version },
	    VOLUME_WAIT_MS, &err);
	if (task->run.refusal == REFUSAL_NONE)
		return run_open(task, "pip", ACCESS_WRITE, request->wall_ms);
	log_warn("no packages: %s job=%" PRId64 " sandbox=%s", err.text,
	    task->job->id, task->sandbox.id);
	return false;
}

/* Say why those are no requirements. */
static bool
pip_refuse(struct task *task, enum requirements_result result,
    const struct requirements *words)
{
	static const enum say says[] = {
		[REQUIREMENTS_NONE] = SAY_NO_REQUIREMENT,
		[REQUIREMENTS_QUOTE] = SAY_OPEN_QUOTE,
		[REQUIREMENTS_TOO_MANY] = SAY_MANY_REQUIREMENTS,
		[REQUIREMENTS_BAD] = SAY_BAD_REQUIREMENT,
	};

	return command_say(task, says[result],
	    result == REQUIREMENTS_BAD ? phrase_name(words->bad, 60).text :
					 phrase_count(REQUIREMENTS_MAX).text,
	    NULL);
}

bool
cmd_pip(struct task *task)
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

	if (!command_choose_version(task))
		return false;
	/* only requirements reach pip */
	if (result != REQUIREMENTS_OK)
		return pip_refuse(task, result, &words);
	task->tick = command_show_progress;
	collect_init(&task->collect, PIP_LOG_MAX, 0);
	if (open_pip_cell(task, &request))
		(void)run_request(task, &request);
	run_close(task);
	if (!command_has_run(task))
		return false;
	render_pip(&task->env, words.words);
	return outcome_succeeded(&task->run);
}

/* ---- /il packages ---- */

/* The list comes from a cell of the user's, which can read packages and is
 * warm. */
bool
cmd_packages_list(struct task *task)
{
	struct cell_request request = {
		.op = OP_PACKAGES,
		.count = PACKAGES_MOST,
		.max_bytes = RECORD_MAX,
		.output_max = LIST_MAX,
	};

	collect_init(&task->collect, LIST_MAX, 0);
	if (!command_choose_version(task) || !command_do(task, &request))
		return false;
	render_packages(&task->env);
	task->outcome = "listed";
	return true;
}

/* Store the view of a button that removes unneeded packages; 0: there are none,
 * or no view could be stored. */
static int64_t
offer_rest(struct task *task)
{
	struct view view = { .kind = JOB_PACKAGES_REMOVE,
		.user_id = task->job->user_id };

	(void)snprintf(view.version, sizeof(view.version), "%s",
	    task->job->version);
	return task->collect.output.len == 0 ? 0 :
					       command_store_view(task, &view);
}

/* Code cannot write to packages, so a cell that mounts nothing else removes
 * them.  A button names no package: it removes unneeded ones. */
bool
cmd_packages_remove(struct task *task)
{
	const char *name = task->job->view_id == 0 ? task->job->text : NULL;
	struct cell_request request = {
		.op = OP_UNINSTALL,
		.name = name,
		.count = PACKAGES_MOST,
		.output_max = LIST_MAX,
		.wall_ms = FILE_OP_MS,
	};

	if (!command_choose_version(task))
		return false;
	collect_init(&task->collect, LIST_MAX, 0);
	run_once(task, "packages", &request);
	/* nothing was installed for that Python, or not this package */
	if (name != NULL &&
	    ((task->run.end == RUN_REFUSED &&
		 task->run.refusal == REFUSAL_NO_WORKSPACE) ||
		outcome_failed_with(&task->run, ERROR_NOT_FOUND)))
		return command_say(task, SAY_NO_PACKAGE,
		    phrase_name(name, PACKAGE_SHOWN).text, NULL);
	if (!command_succeeded(task))
		return false;
	render_uninstalled(&task->env, name,
	    name != NULL ? offer_rest(task) : 0);
	task->outcome = "removed";
	return true;
}
