/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "../render/render_view.h"
#include "py_view.h"

/* Ask for the package that the run was missing, as /il pip does. */
static int
install(struct task *task, const char *package, struct err *err)
{
	int result;

	free(task->job->text);
	task->job->text = xstrdup(package);
	task->job->kind = JOB_PIP; /* so that it is called by that name */
	result = cmd_pip(task, err);
	task->job->kind = JOB_PY_INSTALL;
	return result;
}

/* Install, then the run again: one answer, in the place of the one before. */
int
cmd_py_install(struct task *task, struct err *err)
{
	auto_view_texts struct view_texts texts = { 0 };
	struct view view;
	int result = py_view_load(task, &view, &texts, err);

	if (result != 0)
		return result < 0 ? -1 : 0;
	free(task->job->version);
	task->job->version = xstrdup(view.version);
	result = install(task, texts.package, err);
	if (result != 0 || task->taken)
		return result;
	if (!outcome_succeeded(&task->run)) {
		view.texts = &texts;
		py_view_buttons(task, &view);
		return 0;
	}
	message_release(&task->message);
	collect_release(&task->collect);
	task->job->has_text = false;
	result = cmd_py(task, err);
	if (result == 0 && !task->taken)
		render_installed(&task->message, texts.package);
	return result;
}
