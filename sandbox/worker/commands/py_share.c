/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "../render/render_view.h"
#include "py_view.h"

/* What everybody gets is a copy: it lives on when the answer is deleted. */
int
cmd_py_share(struct task *task, struct err *err)
{
	auto_view_texts struct view_texts texts = { 0 };
	struct view view;
	int64_t copy = 0;
	int result = py_view_load(task, &view, &texts, err);

	/* whatever is wrong concerns one person */
	task->apart = result != 0;
	if (result != 0)
		return result < 0 ? -1 : 0;
	/* once the copy is there it is not shared a second time, so whoever
	 * takes this job over must not say that it has been */
	if (!run_start(task))
		return 0;
	result = view_share(task->worker->db, &view, &copy, err);
	if (result < 0)
		return -1;
	if (result == 1) {
		task->apart = true;
		buf_adds(&task->message.lead, _(TEXT_SHARED_NOW));
		task->outcome = "shared before";
		return 0;
	}
	view.texts = &texts;
	render_shared(&task->message, &view, copy, &task->env);
	task->outcome = "shared";
	return 0;
}
