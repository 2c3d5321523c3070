/* SPDX-License-Identifier: MIT */
/* Editors that hold a run's code and input, for its owner or for somebody who
 * tries a shared one; or the input alone. */
#include "command.h"

#include <string.h>

#include "../../base/cleanup.h"
#include "../../store/editor.h"
#include "../render/render_view.h"
#include "py_view.h"

/* The id that it is sent back with.  Code that somebody else shared runs as
 * one's own, on a node that may have no row of it. */
static char *
make_id(enum job_kind kind, const struct view *view)
{
	if (kind == JOB_PY_TRY)
		return editor_id_tried(view->version, view->timeit);
	return editor_id(kind == JOB_PY_GIVE ? ACTION_PY_INPUT : ACTION_PY,
	    view->id);
}

int
cmd_py_edit(struct task *task, struct err *err)
{
	enum job_kind kind = task->job->kind;
	auto_view_texts struct view_texts texts = { 0 };
	auto_free char *custom_id = NULL;
	struct view view;
	int result = py_view_load(task, &view, &texts, err);

	if (result != 0)
		return result < 0 ? -1 : 0;
	if (kind != JOB_PY_GIVE &&
	    !command_is_editable(texts.text, strlen(texts.text))) {
		render_long_code(&task->message, texts.text, &task->env);
		task->outcome = "not editable";
		return 0;
	}
	custom_id = make_id(kind, &view);
	return py_view_editor(task, custom_id,
	    kind == JOB_PY_GIVE ? NULL : texts.text, texts.input, err);
}
