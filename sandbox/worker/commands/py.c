/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/sandbox.h"
#include "worker/commands/source.h"
#include "worker/render/render_view.h"

/* In tracebacks: File "/code/main.py", line 1. */
#define SOURCE_NAME "main.py"

/*
 * A session keeps its interpreter after each run; so does any run that asks for
 * it.  The run is stored as broken off before it begins, so that the next
 * answer is right whatever dies.
 */

/* Before the lease: is the interpreter to be kept, and is there one? */
static int
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

/* The reason why an interpreter that was to be kept is gone, as far as the run
 * shows it. */
static enum kept_end
kept_end_of(const struct run_outcome *run)
{
	static const enum kept_end ends[] = {
		[REASON_EXIT] = KEPT_EXITED,
		[REASON_SIGNAL] = KEPT_SIGNAL,
		[REASON_TIME] = KEPT_TIME,
		[REASON_MEMORY] = KEPT_MEMORY,
		[REASON_OUTPUT] = KEPT_OUTPUT,
		[REASON_ERROR] = KEPT_EXITED,
	};

	return run->end == RUN_RESULT ? ends[run->result.reason] :
					KEPT_BROKEN_OFF;
}

/* After the run: store the session.  Returns why its interpreter was gone
 * before the run; 0: it was not. */
static enum kept_end
kept_after(struct task *task, bool keep, const struct session *before)
{
	const struct run_outcome *run = &task->run;
	const struct cell_result *result = &run->result;
	bool known = run->end == RUN_RESULT;
	bool began = outcome_began(run);
	struct session after = { .started_at = before->started_at };
	struct err err = { 0 };

	if (!task->keep)
		return 0;
	/* the run did not begin, so the session is as before */
	if (!began)
		after = *before;
	else if (known && result->kept)
		after = (struct session){ .started_at = before->started_at,
			.kept_at = clock_wall_ms() / 1000,
			.names = result->kept_names,
			.bytes = result->kept_bytes };
	else if (keep)
		after.ended = kept_end_of(run);
	if (session_put(task->worker->db, task->sandbox.id, &after, &err) != 0)
		log_warn("%s sandbox=%s", err.text, task->sandbox.id);
	if (!began || (known && result->went_on))
		return 0;
	if (before->kept_at == 0)
		return (enum kept_end)before->ended;
	if (known && result->ended != 0)
		return result->ended;
	return task->kept_ended != 0 ? task->kept_ended : KEPT_RESTARTED;
}

/* ---- the run ---- */

/* Run in the current directory, or in its nearest existing parent; a path is
 * relative to that. */
static void
run_in_place(struct task *task, struct cell_request *request)
{
	if (run_open(task, "user", ACCESS_ANY, request->wall_ms)) {
		request->cwd = task->sandbox.cwd;
		(void)run_request(task, request);
		if (place_find(task) &&
		    (request->path == NULL || command_resolve(task)))
			(void)run_request(task, request);
		if (request->path != NULL)
			place_look_at_top(task);
	}
	run_close(task);
}

/* Run Python within the operator's limits. */
static int
run_python(struct task *task, struct cell_request *request, struct err *err)
{
	const struct config *config = task->worker->config;
	struct render_env *env = &task->env;
	int64_t output = config->output_limit;
	struct session session;
	enum kept_end ended;

	if (kept_before(task, request, &session, err) != 0)
		return -1;
	request->op = OP_RUN;
	request->input = task->job->input;
	request->input_len = strlen(task->job->input);
	request->echo = config->echo_last_expr;
	request->merge = true;
	request->wall_ms = env->config->timeout_ms;
	request->output_max = output;
	request->collect_files = COLLECT_FILES;
	request->collect_bytes = env->file_most;
	/* the message keeps room for the output, which may go as a file */
	if (env->may_attach && output < MESSAGE_BYTES_MAX)
		request->collect_total = MESSAGE_BYTES_MAX - output;
	collect_init(&task->collect, (size_t)output,
	    (size_t)request->collect_total);
	task->tick = command_show_progress;
	run_in_place(task, request);
	command_note_usage(task);
	env->has_input = request->input_len > 0;
	ended = kept_after(task, request->keep, &session);
	if (!command_has_run(task))
		return 0;
	render_run(&task->message, &task->run, &task->collect, env);
	render_session_ended(&task->message, ended);
	return 0;
}

/* Program that measures a file, whatever bytes are in its name; heap.  A file
 * below the current directory is found from there, as that may be another one
 * by then. */
static char *
measure_file(const struct task *task, const char *path)
{
	auto_buf struct buf name = BUF_INIT(2 * PATH_SIZE);
	const char *cwd = task->sandbox.cwd;
	size_t len = strlen(cwd);
	bool below = task->job->view_id == 0 && len > 0 &&
	    strncmp(path, cwd, len) == 0 && path[len] == '/';

	for (const char *c = below ? path + len + 1 : path; *c != '\0'; c++)
		buf_addf(&name, "%02x", (unsigned char)*c);
	return xprintf("%%%%timeit import os, runpy, sys; "
		       "p = os.path.join(%s, bytes.fromhex('%s').decode()); "
		       "sys.path[0] = p.rpartition('/')[0]\n"
		       "runpy.run_path(p, run_name='__main__')",
	    below ? "os.getcwd()" : "'/workspace'", buf_str(&name));
}

/* Run the program as a notebook's cell that begins with %%timeit. */
static int
measure_python(struct task *task, struct cell_request request, struct err *err)
{
	auto_free char *source = request.path != NULL ?
	    measure_file(task, request.path) :
	    xprintf("%%%%timeit\n%s", request.source);

	request.path = NULL;
	request.source = source;
	request.source_len = strlen(source);
	return run_python(task, &request, err);
}

/* Run the request and store its view; again: in the place of the answer
 * before. */
static int
run_chosen(struct task *task, struct cell_request *request, bool again,
    struct err *err)
{
	request->name = SOURCE_NAME;
	if ((task->job->timeit ? measure_python(task, *request, err) :
				 run_python(task, request, err)) != 0)
		return -1;
	py_view_keep(task, request, again);
	return 0;
}

/* Run a file of the sandbox as it is. */
static int
run_file(struct task *task, bool again, struct err *err)
{
	struct cell_request request = { .path = task->path };

	return command_resolve(task) ? run_chosen(task, &request, again, err) :
				       0;
}

int
program_run(struct task *task, struct source *source, struct err *err)
{
	struct cell_request request = {
		.source = buf_str(&source->code),
		.source_len = source->code.len,
	};
	struct job *job = task->job;
	int result;

	task->env.slip = source->slip;
	if (job->input[0] == '\0' && source->input.len > 0) {
		free(job->input);
		job->input = buf_steal(&source->input, NULL);
	}
	result = job->path[0] != '\0' ? run_file(task, false, err) :
					run_chosen(task, &request, false, err);
	if (result == 0 && !task->taken)
		render_left_out(&task->message, source->others,
		    source->other_count);
	return result;
}

/* Run the program of the button's view once more, byte for byte. */
static int
run_again(struct task *task, struct err *err)
{
	struct cell_request request = { .path = NULL };
	struct job *job = task->job;
	auto_source struct source source = { .pieces = 0 };
	int result = py_view_again(task, err);

	if (result != 0)
		return result;
	if (!command_choose_version(task)) {
		py_view_offer(task);
		return 0;
	}
	if (!job->has_text)
		return run_file(task, true, err);
	request.source = job->text;
	request.source_len = strlen(job->text);
	source_read(&source, job->text, SOURCE_TEXT);
	task->env.slip = source.slip;
	return run_chosen(task, &request, true, err);
}

int
cmd_py(struct task *task, struct err *err)
{
	const struct job *job = task->job;
	auto_source struct source source = { .pieces = 0 };

	if (job->view_id != 0 && !job->has_text)
		return run_again(task, err);
	if (!command_choose_version(task))
		return 0;
	if (job->attachment_url[0] != '\0' || job->has_text ||
	    job->path[0] == '\0')
		return program_read(task, &source) ?
		    program_run(task, &source, err) :
		    0;
	return run_file(task, false, err);
}
