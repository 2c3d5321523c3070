/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/text.h"
#include "../../store/editor.h"
#include "../../store/view.h"
#include "../render/render_program.h"
#include "program.h"

/* More than an editor takes: it can be edited as a file. */
static void
offer_file(struct task *task, char *code)
{
	const char *name = "main.py";
	size_t len = strlen(code);

	render_too_long_to_edit(&task->message);
	if (task->env.may_attach && (int64_t)len <= task->env.file_most)
		(void)message_attach(&task->message, name, code, len, &name);
	else
		free(code);
	task->outcome = "too long to edit";
}

static int
open_editor(struct task *task, const char *code, struct err *err)
{
	struct view view = { .kind = JOB_PY, .user_id = task->job->user_id };
	json_auto_t *modal = NULL;

	if (view_insert(task->worker->db, &view, err) < 0)
		return -1;
	modal = editor_open(ACTION_PY, view.id, _("Run Python"),
	    json_pack("[o, o]",
		editor_input("code", _("Code"), NULL, true, code),
		editor_input("stdin", _("Input (stdin)"),
		    _("What input() will read, if anything"), false, NULL)));
	task->editor = modal == NULL ? NULL : json_dumps(modal, JSON_COMPACT);
	if (task->editor == NULL)
		return err_set(err, ERR_INPUT, "no editor for this text");
	task->outcome = "editor";
	return 0;
}

/* What has been found of the message before, if anything, in the view that is
 * kept for it.  1: this person has no such view (any more). */
static int
load_code(struct task *task, char **code, struct err *err)
{
	const struct job *job = task->job;
	auto_view_texts struct view_texts texts = { 0 };
	struct view view;
	int found = view_load(task->worker->db, job->view_id, &view, &texts,
	    err);

	if (found != 0)
		return found;
	if (view.kind != JOB_MESSAGE_EDIT || view.user_id != job->user_id)
		return 1;
	if (*texts.text != '\0')
		*code = xstrdup(texts.text);
	return 0;
}

/* "Edit and run" of a message's menu.  Should it come too late, a button asks
 * again: what was found is kept for that, as links of files grow old. */
int
cmd_message_edit(struct task *task, struct err *err)
{
	auto_blocks struct blocks blocks = { .count = 0 };
	auto_free char *code = NULL;
	int found = load_code(task, &code, err);

	if (found < 0)
		return -1;
	if (code == NULL) {
		if (!program_find(task, &blocks))
			return 0;
		/* the last line needs no end in an editor */
		buf_cut(&blocks.code, blocks.code.len - 1);
		code = buf_steal(&blocks.code, NULL);
		if (found == 0 &&
		    view_set_text(task->worker->db, task->job->view_id, code,
			err) < 0)
			return -1;
	}
	if (text_codepoints(code, strlen(code)) <= EDITOR_POINTS)
		return open_editor(task, code, err);
	offer_file(task, code);
	code = NULL;
	return 0;
}
