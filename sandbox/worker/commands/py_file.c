/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../render/render_view.h"
#include "py_view.h"

/* The path in this place of the list (view.h), from 1; heap, NULL: none. */
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

/* As /il get. */
int
cmd_py_file(struct task *task, struct err *err)
{
	auto_view_texts struct view_texts texts = { 0 };
	struct view view;
	char *path;
	int result = py_view_load(task, &view, &texts, err);

	if (result != 0)
		return result < 0 ? -1 : 0;
	path = find_path(texts.files, task->job->page);
	if (path == NULL) {
		buf_adds(&task->message.lead, _(TEXT_CODE_GONE));
		task->outcome = "gone";
		return 0;
	}
	free(task->job->path);
	task->job->path = path;
	return cmd_get(task, err);
}
