/* SPDX-License-Identifier: MIT */
/* /il py: a run, its session, its view, and the buttons of that. */
#include "worker/commands/command.h"
#include "worker/render/render_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/utf8.h"
#include "store/editor.h"
#include "store/sandbox.h"
#include "store/script.h"
#include "store/job.h"
#include "worker/commands/source.h"
#include "worker/render/terminal.h"

/* Bytes that are stored of the beginning and the end of longer output. */
#define OUTPUT_HEAD (VIEW_TEXT_MAX / 8 * 5)
#define OUTPUT_TAIL (VIEW_TEXT_MAX / 4)
/* In tracebacks: File "/code/main.py", line 1. */
#define SOURCE_NAME "main.py"

/* Load the job's view, if its user may have it. */
static bool
py_view_load(struct task *task)
{
	const struct job *job = task->job;
	const struct view *view = &task->view;
	int found = command_load_view(task, job->view_id);

	if (found < 0)
		return false;
	return (found == 0 && view->kind == JOB_PY &&
		   (view->user_id == job->user_id ||
		       (job->kind == JOB_PY_TRY && view->share != 0))) ||
	    command_say(task, SAY_CODE_GONE, NULL);
}

/* Fill the job from its view's run; its own input and version have
 * precedence. */
static bool
py_view_again(struct task *task)
{
	struct job *job = task->job;
	const struct view *view = &task->view;
	const struct view_texts *texts = &task->texts;

	if (!py_view_load(task))
		return false;
	job->has_text = texts->text[0] != '\0';
	if (!job->has_text && view->path[0] == '\0')
		return command_say(task, SAY_CODE_GONE, NULL);
	command_set(&job->text, xstrdup(texts->text));
	command_set(&job->path, xstrdup(view->path));
	if (job->input[0] == '\0')
		command_set(&job->input, xstrdup(texts->input));
	if (job->version[0] == '\0')
		command_set(&job->version, xstrdup(view->version));
	job->timeit = view->timeit;
	job->keep = view->keep;
	job->share = view->share != 0;
	return true;
}

/* Output as it is shown, cut to VIEW_TEXT_MAX; heap. */
static char *
shown_output(const struct buf *printed)
{
	auto_buf struct buf shown = BUF_INIT(TERMINAL_SHOWN_MAX(printed->len));
	auto_buf struct buf kept = BUF_INIT(VIEW_TEXT_MAX + 1);
	size_t head = OUTPUT_HEAD;
	size_t tail;

	(void)terminal_show(&shown, buf_str(printed), printed->len,
	    TERMINAL_COLOURS);
	if (shown.len <= VIEW_TEXT_MAX)
		return buf_steal(&shown, NULL);
	tail = shown.len - OUTPUT_TAIL;
	while (head > 0 && utf8_is_tail(shown.data[head]))
		head--;
	while (tail < shown.len && utf8_is_tail(shown.data[tail]))
		tail++;
	buf_add(&kept, shown.data, head);
	buf_adds(&kept, "\n…\n");
	buf_add(&kept, shown.data + tail, shown.len - tail);
	return buf_steal(&kept, NULL);
}

/* False: a request for the file would be refused for the same reason, or its
 * path does not lead to itself. */
static bool
can_be_fetched(const struct collected *left)
{
	char path[PATH_SIZE];
	bool refused = left->why == LEFT_OUT_SIZE ||
	    left->why == LEFT_OUT_UNREADABLE || left->why == LEFT_OUT_KIND ||
	    left->why == LEFT_OUT_GONE;

	return !refused && !left->displayed && left->size > 0 &&
	    path_resolve("", left->path, path) == PATH_OK &&
	    strcmp(path, left->path) == 0;
}

/* List the files that are in the sandbox and not in the message, after the
 * folder of those that are folded (store/columns.def); heap. */
static char *
py_view_list_files(const struct task *task)
{
	const struct collect *collect = &task->collect;
	auto_buf struct buf list = BUF_INIT(VIEW_TEXT_MAX + 1);
	int count = 0;

	if (collect->folded) {
		buf_addf(&list, ".%s%s//",
		    collect->folder[0] != '\0' ? "/" : "", collect->folder);
		count++;
	}
	for (size_t i = 0; i < collect->left_count && task->env.may_attach;
	     i++) {
		const struct collected *left = &collect->left[i];

		if (count == VIEW_FILES_MAX || !can_be_fetched(left))
			continue;
		buf_addf(&list, "%s//", left->path);
		count++;
	}
	return list.overflow || count == 0 ? xstrdup("") :
					     buf_steal(&list, NULL);
}

/* Store a run that is over, anew or in the view of the run before it, and add
 * the buttons to its answer.  A run that cannot be stored gets no buttons. */
static void
py_view_keep(struct task *task, const struct cell_request *request, bool again)
{
	const struct job *job = task->job;
	struct db *db = task->worker->db;
	auto_view_texts struct view_texts texts = { 0 };
	struct view view = {
		.id = job->view_id,
		.user_id = job->user_id,
		.kind = JOB_PY,
		.page = 1,
		.share = job->share,
		.timeit = job->timeit,
		.keep = job->keep,
		.texts = &texts,
	};
	struct render_need need;
	struct err err = { 0 };
	int result;

	/* code that is too long, or has a NUL, cannot be stored */
	if (task->taken ||
	    (request->source != NULL &&
		(request->source_len > SCRIPT_ALL_MAX ||
		    strlen(request->source) != request->source_len)))
		return;
	render_need(&need, &task->run, &task->collect.output);
	texts.text = xstrdup(request->source != NULL ? request->source : "");
	texts.input = xstrdup(job->input);
	texts.output = shown_output(&task->collect.output);
	texts.files = py_view_list_files(task);
	texts.package = xstrdup(need.package);
	(void)snprintf(view.version, sizeof(view.version), "%s", job->version);
	if (request->source == NULL)
		memcpy(view.path,
		    *task->elsewhere != '\0' ? task->elsewhere : task->path,
		    sizeof(view.path));
	result = again ? view_set(db, STATEMENT_VIEW_SET_RUN, &view, &err) :
			 view_insert(db, &view, &err);
	if (result < 0)
		log_err("no buttons: %s job=%" PRId64, err.text, job->id);
	/* its view may have been deleted during the run */
	if (result != 0)
		return;
	render_buttons(&task->env, &view, task->elsewhere,
	    texts.output[0] != '\0' && !message_fits(&task->message),
	    need.input);
}

/* Add the buttons of the job's own view to an answer that it cannot run
 * again. */
static void
py_view_offer(struct task *task)
{
	render_buttons(&task->env, &task->view, "", false, false);
}

/* ---- editors ---- */

/* Field for the input; a text that Discord would change is left out. */
static json_t *
make_input(const char *input, bool required)
{
	return editor_input("stdin", _("Input (stdin)"),
	    _("What input() will read, if anything"), required,
	    input != NULL && *input != '\0' &&
		    command_is_editable(input, strlen(input)) ?
		input :
		NULL);
}

bool
py_open_editor(struct task *task, const char *custom_id, const char *code,
    const char *input)
{
	json_t *inputs = code == NULL ?
	    json_pack("[o]", make_input(input, true)) :
	    json_pack("[o, o]",
		editor_input("code", _("Code"), NULL, true, code),
		make_input(input, false));

	return command_open_editor(task, custom_id, _("Run Python"), inputs);
}

/* ---- buttons ---- */

/* Open an editor with a run's code and input, for its owner or for somebody who
 * tries a shared run; or with the input alone. */
bool
cmd_py_edit(struct task *task)
{
	enum job_kind kind = task->job->kind;
	const struct view *view = &task->view;
	const char *code = NULL;
	auto_free char *custom_id = NULL;

	if (!py_view_load(task))
		return false;
	if (kind != JOB_PY_GIVE)
		code = task->texts.text;
	if (code != NULL && !command_is_editable(code, strlen(code))) {
		render_long_code(&task->env, code);
		task->outcome = "not editable";
		return false;
	}
	/* shared code runs as one's own, on a node that may not have its row */
	custom_id = kind == JOB_PY_TRY ?
	    editor_id_tried(view->version, view->timeit) :
	    action_id(code == NULL ? ACTION_PY_INPUT : ACTION_PY, view->id);
	return py_open_editor(task, custom_id, code, task->texts.input);
}

bool
cmd_py_output(struct task *task)
{
	int64_t page = task->job->page;

	if (!py_view_load(task))
		return false;
	render_output(&task->message, &task->view, &page);
	task->outcome = "output";
	return view_set_page(task->worker->db, task->view.id, page,
		   &task->err) >= 0;
}

/* Share a run.  The shared message is a copy, which outlives the answer.  A run
 * is shared once: if this worker dies, the next one must not report that as
 * "shared before". */
bool
cmd_py_share(struct task *task)
{
	int64_t copy = 0;
	int result;

	/* an error concerns one person */
	task->apart = true;
	if (!py_view_load(task))
		return false;
	task->apart = false;
	if (!run_start(task))
		return false;
	result = view_share(task->worker->db, &task->view, &copy, &task->err);
	task->apart = result == 1;
	if (result == 1)
		return command_say(task, SAY_SHARED_BEFORE, NULL);
	render_shared(&task->env, &task->view, copy);
	task->outcome = "shared";
	return true;
}

/* Install the missing package of a run, as /il pip does, and run again, with
 * one answer in the place of the one before. */
bool
cmd_py_install(struct task *task)
{
	auto_free char *package = NULL;
	bool installed;

	if (!py_view_load(task))
		return false;
	package = xstrdup(task->texts.package);
	command_set(&task->job->version, xstrdup(task->view.version));
	command_set(&task->job->text, xstrdup(package));
	task->job->kind = JOB_PIP; /* its texts are those of /il pip */
	installed = cmd_pip(task);
	task->job->kind = JOB_PY_INSTALL;
	if (!installed) {
		if (!task->taken)
			py_view_offer(task);
		return false;
	}
	message_release(&task->message);
	collect_release(&task->collect);
	task->job->has_text = false;
	(void)cmd_py(task);
	buf_addf(&task->message.tail, _("\n-# %s was installed first"),
	    phrase_name(package, PACKAGE_SIZE).text);
	return true;
}

/* Path at this index of the list (store/columns.def), from 1; heap, NULL:
 * none. */
static char *
find_path(const char *list, int64_t place)
{
	const char *end = strstr(list, "//");

	while (end != NULL && --place > 0) {
		list = end + 2;
		end = strstr(list, "//");
	}
	return end == NULL ? NULL : xstrndup(list, (size_t)(end - list));
}

/* Set the job's path to the one at this index. */
static bool
choose_path(struct task *task, int64_t place)
{
	char *path;

	if (!py_view_load(task))
		return false;
	path = find_path(task->texts.files, place);
	if (path == NULL)
		return command_say(task, SAY_CODE_GONE, NULL);
	command_set(&task->job->path, path);
	return true;
}

/* Get a file of the view, as /il get does. */
bool
cmd_py_file(struct task *task)
{
	return choose_path(task, task->job->page) && cmd_get(task);
}

/* List the folder of the run's files, as /il look does. */
bool
cmd_py_show(struct task *task)
{
	if (!choose_path(task, 1))
		return false;
	/* the path is one from the top, as if it had been typed */
	command_set(&task->job->path, xprintf("~/%s", task->job->path));
	task->job->view_id = 0;
	return cmd_look(task);
}

/* The row goes first: if the message stays, it says so and has no buttons. */
bool
cmd_py_remove(struct task *task)
{
	if (view_remove(task->worker->db, task->job->view_id,
		task->job->user_id, &task->err) < 0)
		return false;
	task->remove = true;
	return command_say(task, SAY_REMOVED_ANSWER, NULL);
}

/*
 * A session keeps its interpreter after each run; so does any run that asks for
 * it.  The run is stored as broken off before it begins, so that the next
 * answer is right whatever dies.
 */

/* Before the lease: is the interpreter to be kept, and is there one? */
static bool
kept_before(struct task *task, struct cell_request *request,
    struct session *session)
{
	struct db *db = task->worker->db;
	struct session begun;

	if (session_find(db, task->sandbox.id, session, &task->err) != 0)
		return false;
	request->keep = task->worker->config->sessions > 0 &&
	    (session->started_at != 0 || task->job->keep);
	task->keep = request->keep || session->kept_at != 0;
	begun = (struct session){ .started_at = session->started_at,
		.ended = KEPT_BROKEN_OFF };
	return !task->keep ||
	    session_put(db, task->sandbox.id, &begun, &task->err) == 0;
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
		after.ended = outcome_kind(run)->kept;
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
static bool
run_python(struct task *task, struct cell_request *request)
{
	const struct config *config = task->worker->config;
	struct render_env *env = &task->env;
	int64_t output = config->output_limit;
	struct session session;
	enum kept_end ended;

	if (!kept_before(task, request, &session))
		return false;
	request->op = OP_RUN;
	request->input = task->job->input;
	request->input_len = strlen(task->job->input);
	request->echo = true;
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
		return false;
	render_run(env);
	render_session_ended(&task->message, ended);
	return true;
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

/* Run the request and store its view; again: in the place of the answer before.
 * timeit: it runs as a notebook's cell that begins with %%timeit. */
static bool
run_chosen(struct task *task, struct cell_request *request, bool again)
{
	struct cell_request run = *request;
	auto_free char *source = NULL;

	if (task->job->timeit) {
		source = run.path != NULL ?
		    measure_file(task, run.path) :
		    xprintf("%%%%timeit\n%s", run.source);
		run.path = NULL;
		run.source = source;
		run.source_len = strlen(source);
	}
	run.name = SOURCE_NAME;
	/* an answer that says why nothing ran has the buttons, too */
	if (!run_python(task, &run) && task->err.code != ERR_NONE)
		return false;
	py_view_keep(task, request, again);
	return true;
}

/* Run a file of the sandbox as it is. */
static bool
run_file(struct task *task, bool again)
{
	struct cell_request request = { .path = task->path };

	return command_resolve(task) && run_chosen(task, &request, again);
}

bool
py_run_source(struct task *task, struct source *source)
{
	struct cell_request request = {
		.source = buf_str(&source->code),
		.source_len = source->code.len,
	};
	struct job *job = task->job;
	bool run;

	task->env.slip = source->slip;
	if (job->input[0] == '\0' && source->input.len > 0)
		command_set(&job->input, buf_steal(&source->input, NULL));
	run = job->path[0] != '\0' ? run_file(task, false) :
				     run_chosen(task, &request, false);
	if (source->other_count > 0)
		render_left_out(&task->message, source->others,
		    source->other_count);
	return run;
}

/* Run the program of the button's view once more, byte for byte. */
static bool
run_again(struct task *task)
{
	struct cell_request request = { .path = NULL };
	struct job *job = task->job;
	auto_source struct source source = { .pieces = 0 };

	if (!py_view_again(task))
		return false;
	if (!command_choose_version(task)) {
		py_view_offer(task);
		return false;
	}
	if (!job->has_text)
		return run_file(task, true);
	request.source = job->text;
	request.source_len = strlen(job->text);
	source_read(&source, job->text, SOURCE_TEXT);
	task->env.slip = source.slip;
	return run_chosen(task, &request, true);
}

/* Run the code of the option or of the editor, or an uploaded file. */
static bool
run_typed(struct task *task)
{
	const struct job *job = task->job;
	auto_source struct source source = { .pieces = 0 };

	if (job->attachment_url[0] != '\0')
		return program_read_file(task, &source) &&
		    py_run_source(task, &source);
	source_read(&source, job->text, SOURCE_TEXT);
	return (!source.too_many || program_refuse_many(task)) &&
	    py_run_source(task, &source);
}

bool
cmd_py(struct task *task)
{
	const struct job *job = task->job;

	if (job->view_id != 0 && !job->has_text)
		return run_again(task);
	if (!command_choose_version(task))
		return false;
	return job->attachment_url[0] == '\0' && !job->has_text &&
		job->path[0] != '\0' ?
	    run_file(task, false) :
	    run_typed(task);
}
