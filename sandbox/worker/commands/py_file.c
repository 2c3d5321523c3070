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

/* The job's path becomes the one in this place.  1: the message says that it is
 * gone. */
static int
choose_path(struct task *task, int64_t place, struct err *err)
{
	auto_view_texts struct view_texts texts = { 0 };
	struct view view;
	char *path;
	int result = py_view_load(task, &view, &texts, err);

	if (result != 0)
		return result;
	path = find_path(texts.files, place);
	if (path == NULL) {
		buf_adds(&task->message.lead, _(TEXT_CODE_GONE));
		task->outcome = "gone";
		return 1;
	}
	free(task->job->path);
	task->job->path = path;
	return 0;
}

/* As /il get. */
int
cmd_py_file(struct task *task, struct err *err)
{
	int result = choose_path(task, task->job->page, err);

	return result != 0 ? (result < 0 ? -1 : 0) : cmd_get(task, err);
}

/* The folder that the run's files are in, as /il look. */
int
cmd_py_show(struct task *task, struct err *err)
{
	int result = choose_path(task, 1, err);
	char *path;

	if (result != 0)
		return result < 0 ? -1 : 0;
	/* this is no page of a listing, and its path is one from the top */
	path = xprintf("~/%s", task->job->path);
	free(task->job->path);
	task->job->path = path;
	task->job->view_id = 0;
	return cmd_look(task, err);
}
