/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "../render/render_view.h"
#include "py_view.h"

int
cmd_py_output(struct task *task, struct err *err)
{
	auto_view_texts struct view_texts texts = { 0 };
	struct view view;
	int64_t page = task->job->page;
	int result = py_view_load(task, &view, &texts, err);

	if (result != 0)
		return result < 0 ? -1 : 0;
	view.texts = &texts;
	render_output(&task->message, &view, &page);
	task->outcome = "output";
	return view_set_page(task->worker->db, view.id, page, err) < 0 ? -1 : 0;
}
