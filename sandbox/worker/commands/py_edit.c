/* SPDX-License-Identifier: MIT */
/* Editors that hold a run's code and input, for its owner or for somebody who
 * tries a shared one; or the input alone. */
#include "command.h"

#include <string.h>

#include "../render/render_view.h"
#include "py_view.h"

/* What somebody else shared is run as one's own. */
static int
own_view(struct task *task, const struct view *view, int64_t *id,
    struct err *err)
{
	struct view own = {
		.kind = JOB_PY,
		.user_id = task->job->user_id,
		.timeit = view->timeit,
	};

	*id = view->id;
	if (task->job->kind != JOB_PY_TRY)
		return 0;
	memcpy(own.version, view->version, sizeof(own.version));
	if (view_insert(task->worker->db, &own, err) < 0)
		return -1;
	*id = own.id;
	return 0;
}

int
cmd_py_edit(struct task *task, struct err *err)
{
	enum job_kind kind = task->job->kind;
	auto_view_texts struct view_texts texts = { 0 };
	struct view view;
	int64_t id;
	int result = py_view_load(task, &view, &texts, err);

	if (result != 0)
		return result < 0 ? -1 : 0;
	if (kind != JOB_PY_GIVE &&
	    !command_is_editable(texts.text, strlen(texts.text))) {
		render_long_code(&task->message, texts.text, &task->env);
		task->outcome = "not editable";
		return 0;
	}
	if (own_view(task, &view, &id, err) < 0)
		return -1;
	return py_view_editor(task, id, kind == JOB_PY_GIVE ? NULL : texts.text,
	    texts.input, err);
}
