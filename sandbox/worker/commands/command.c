#include "command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "../../base/clock.h"
#include "../../base/config.h"
#include "../../base/err.h"
#include "../../base/log.h"
#include "../../store/db.h"
#include "../render/path.h"
#include "../render/render.h"
#include "../worker.h"

static int (*const functions[JOB_UNKNOWN])(struct task *task,
    struct err *err) = {
#define COMMAND(kind, name, function, ...) [JOB_##kind] = cmd_##function,
#include "../../store/commands.def"
};

void
command_set_outcome(struct task *task, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(task->outcome, sizeof(task->outcome), fmt, ap);
	va_end(ap);
}

bool
command_resolve(struct task *task, const char *path, char *resolved)
{
	const char *cwd = task->job->view_id != 0 ? "" : task->sandbox.cwd;
	enum path_result result = path_resolve(cwd, path, resolved);

	if (result == PATH_OK)
		return true;
	render_path(&task->message, result);
	command_set_outcome(task, "not inside");
	return false;
}

void
command_note_usage(struct task *task, const struct run_outcome *outcome)
{
	const struct cell_result *result = &outcome->result;
	struct err err = { 0 };

	if (outcome->end != RUN_RESULT || result->used_bytes < 0 ||
	    result->used_files < 0)
		return;
	if (sandbox_set_usage(task->worker->db, task->sandbox.id,
		result->used_bytes, result->used_files, &err) < 0)
		log_warn("%s sandbox=%s", err.text, task->sandbox.id);
}

struct render_env
command_env(const struct task *task)
{
	int64_t most = task->job->attachment_limit;

	if (most > MESSAGE_BYTES_MAX)
		most = MESSAGE_BYTES_MAX;
	return (struct render_env){
		.config = task->worker->config,
		.reference = task->job->id,
		.file_most = most > 0 ? most : 0,
		.may_attach = task->job->may_attach,
	};
}

void
command_not_done(struct task *task, const struct run_outcome *outcome,
    const char *path)
{
	struct render_env env = command_env(task);

	message_reset(&task->message);
	render_not_done(&task->message, outcome, path, &env);
	outcome_word(outcome, task->outcome, sizeof(task->outcome));
}

bool
command_do(struct task *task, const char *class,
    const struct cell_request *request, const struct cell_sink *sink,
    struct run_outcome *outcome)
{
	enum access access = request->op == OP_WRITE ? ACCESS_WRITE :
						       ACCESS_TIDY;
	struct run run;

	if (run_open(&run, task, class, access, FILE_OP_MS,
		config_lease_wait_ms(task->worker->config)))
		(void)run_request(&run, request, FILE_OP_MS, sink);
	run_close(&run);
	*outcome = run.outcome;
	if (task->taken)
		return false;
	command_note_usage(task, outcome);
	if (outcome_succeeded(outcome))
		return true;
	command_not_done(task, outcome, request->path);
	return false;
}

/* The sandbox of a command that needs one.  False: the message says why there
 * is none. */
static bool
find_sandbox(struct task *task, struct err *err, int *result)
{
	struct sandbox *sandbox = &task->sandbox;
	int found = sandbox_find(task->worker->db, task->job->user_id, sandbox,
	    err);

	if (found < 0) {
		*result = -1;
		return false;
	}
	if (found == 1 || sandbox->state == SANDBOX_REMOVING) {
		render_no_sandbox(&task->message);
		command_set_outcome(task, "no sandbox");
		return false;
	}
	if (sandbox->state != SANDBOX_ACTIVE ||
	    (!sandbox->pinned &&
		sandbox->expires_at <= clock_wall_ms() / 1000)) {
		render_expired(&task->message, sandbox);
		command_set_outcome(task, "expired");
		return false;
	}
	*result = sandbox_touch(task->worker->db, sandbox->id,
	    task->worker->config->retention_seconds, err);
	if (*result == 1) {
		render_no_sandbox(&task->message);
		command_set_outcome(task, "no sandbox");
	}
	return *result == 0;
}

static int
run_command(struct task *task, struct err *err)
{
	enum job_kind kind = task->job->kind;
	int result = 0;

	if (kind == JOB_UNKNOWN) {
		render_unknown(&task->message);
		command_set_outcome(task, "unknown kind");
		return 0;
	}
	if (commands[kind].needs == COMMAND_NEEDS_SANDBOX &&
	    !find_sandbox(task, err, &result))
		return result < 0 ? -1 : 0;
	return functions[kind](task, err);
}

void
command_run(struct task *task)
{
	struct err err = { 0 };

	if (run_command(task, &err) == 0)
		return;
	log_err("%s job=%" PRId64 " kind=%s", err.text, task->job->id,
	    job_kind_name(task->job->kind));
	message_reset(&task->message);
	render_error(&task->message, task->job->id);
	command_set_outcome(task, "error");
}
