/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/editor.h"
#include "store/view.h"
#include "worker/commands/source.h"
#include "worker/render/render_view.h"

static int
edit_open(struct task *task, const char *code, const char *input,
    struct err *err)
{
	const struct job *job = task->job;
	auto_free char *custom_id = NULL;
	struct view view = {
		.kind = JOB_PY,
		.user_id = job->user_id,
		.timeit = job->timeit,
	};

	(void)snprintf(view.version, sizeof(view.version), "%s", job->version);
	if (view_insert(task->worker->db, &view, err) < 0)
		return -1;
	custom_id = editor_id(ACTION_PY, view.id);
	return py_view_editor(task, custom_id, code, input, err);
}

/* Load the code that was found in the message earlier, if any, from the job's
 * view.  *run: the view of the run that the message answers, or 0.  1: this
 * person has no such view. */
static int
load_code(struct task *task, struct source *source, char **code, int64_t *run,
    struct err *err)
{
	struct job *job = task->job;
	auto_view_texts struct view_texts texts = { 0 };
	struct view view;
	int found = view_load(task->worker->db, job->view_id, &view, &texts,
	    err);

	if (found != 0)
		return found;
	if (view.kind != JOB_MESSAGE_EDIT || view.user_id != job->user_id)
		return 1;
	*run = view.page;
	if (*texts.text == '\0')
		return 0;
	*code = xstrdup(texts.text);
	source->input = (struct buf)BUF_INIT(SOURCE_TEXT_MAX);
	buf_adds(&source->input, texts.input);
	free(job->version);
	job->version = xstrdup(view.version);
	job->timeit = view.timeit;
	return 0;
}

/* Store the code in the job's view, for its button. */
static int
keep_code(struct task *task, char *code, const struct source *source,
    struct err *err)
{
	const struct job *job = task->job;
	auto_free char *input = xstrdup(buf_str(&source->input));
	struct view_texts texts = { .text = code, .input = input };
	struct view view = {
		.id = job->view_id,
		.timeit = job->timeit,
		.texts = &texts,
	};

	(void)snprintf(view.version, sizeof(view.version), "%s", job->version);
	return view_set_program(task->worker->db, &view, err);
}

/* Find the code of the message, or of the file whose run it answers.  1: the
 * message says that there is none. */
static int
edit_find_code(struct task *task, int64_t run, struct source *source,
    char **code, struct err *err)
{
	int none = program_find(task, run, source, err);
	struct job *job = task->job;

	if (none != 0)
		return none;
	if (job->path[0] == '\0') {
		*code = buf_steal(&source->code, NULL);
		return 0;
	}
	if (task->sandbox.id[0] == '\0') {
		buf_adds(&task->message.lead, _(TEXT_CODE_GONE));
		task->outcome = "gone";
		return 1;
	}
	if (!command_resolve(task) || !command_read_editable(task, false))
		return 1;
	*code = buf_steal(&task->collect.files[0].data, NULL);
	return 0;
}

/* "Edit and run" of a message's menu.  If the editor comes too late, a button
 * asks again.  The code is stored for that, as links to files expire. */
int
cmd_message_edit(struct task *task, struct err *err)
{
	auto_source struct source source = { .pieces = 0 };
	auto_free char *code = NULL;
	int64_t run = 0;
	int found = load_code(task, &source, &code, &run, err);

	if (found < 0)
		return -1;
	if (code == NULL) {
		int none = edit_find_code(task, run, &source, &code, err);

		if (none != 0)
			return none;
		if (found == 0 && keep_code(task, code, &source, err) < 0)
			return -1;
	}
	if (text_codepoints(code, strlen(code)) <= EDITOR_POINTS)
		return edit_open(task, code, buf_str(&source.input), err);
	/* the code can be edited as a file */
	render_long_code(&task->message, code, &task->env);
	task->outcome = "too long to edit";
	return 0;
}

/* "Run Python" of a message's menu: it finds the code, and runs it as `/il py`
 * does. */
int
cmd_message_run(struct task *task, struct err *err)
{
	auto_source struct source source = { .pieces = 0 };
	int found = program_find(task, task->job->view_id, &source, err);

	if (found != 0)
		return found;
	task->job->view_id = 0; /* the run gets a view of its own */
	return command_choose_version(task) ? program_run(task, &source, err) :
					      0;
}
