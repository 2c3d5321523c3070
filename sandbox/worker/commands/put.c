/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Most bytes of a file, which is in memory on its way. */
#define PUT_MAX (100 * 1024 * 1024)

/* Fetch the uploaded file; heap.  NULL: the message says why not. */
static void *
put_fetch(struct task *task, size_t *len)
{
	const struct job *job = task->job;
	int64_t most = task->env.config->quota;
	void *data;

	/* the announced size bounds the download */
	if (most > PUT_MAX)
		most = PUT_MAX;
	if (job->attachment_size < 0 || job->attachment_size > most) {
		buf_addf(&task->message.lead, _(TEXT_TOO_LARGE),
		    text_size(job->attachment_size).text, text_size(most).text);
		task->outcome = "too large";
		return NULL;
	}
	data = command_download(task, job->attachment_url, job->attachment_size,
	    len);
	if (data == NULL || *len == (size_t)job->attachment_size)
		return data;
	free(data);
	(void)command_not_as_announced(task);
	return NULL;
}

/* Append the file's name to the path of a directory.  A name that would lead
 * elsewhere is replaced by a clean one. */
static bool
append_name(struct task *task)
{
	const char *own = task->job->attachment_name;
	char name[FILENAME_SIZE];
	char folder[PATH_SIZE];

	(void)filename_clean(name, own);
	memcpy(folder, task->path, sizeof(folder));
	if (*own != '\0' && strchr(own, '/') == NULL &&
	    path_resolve(folder, own, task->path) == PATH_OK &&
	    strcmp(path_name(task->path), own) == 0)
		return true;
	if (path_resolve(folder, name, task->path) == PATH_OK)
		return true;
	render_path(&task->message, PATH_TOO_LONG);
	task->outcome = "not inside";
	return false;
}

/* Append the file's name if the path is that of an existing directory.  False:
 * message and outcome word say why not. */
static bool
look_at_target(struct task *task)
{
	const struct collect *collect = &task->collect;

	if (!command_ask(task,
		(struct cell_request){ .op = OP_STAT, .path = task->path }) &&
	    task->run.end != RUN_RESULT) {
		(void)command_succeeded(task);
		return false;
	}
	return collect->entry_count != 1 ||
	    collect->entries[0].kind != ENTRY_DIRECTORY || append_name(task);
}

/* Send the file to the cell.  name: its own, if the job's path is a
 * folder's. */
static void
put_store(struct task *task, const char *name, const void *data, size_t len)
{
	struct cell_request write = {
		.op = OP_WRITE,
		.path = task->path,
		.content = data,
		.content_len = len,
		.wall_ms = FILE_OP_MS,
	};

	(void)run_request(task, &write);
	if (place_find_room(task, name))
		(void)run_request(task, &write);
	if (!command_succeeded(task))
		return;
	command_note_usage(task);
	render_written(&task->message, task->path, (int64_t)len, &task->run,
	    &task->env);
	task->outcome = "stored";
}

/* Without a path the file goes into the current directory. */
int
cmd_put(struct task *task, struct err *err)
{
	bool folder = path_means_folder(task->job->path);
	auto_free void *data = NULL;
	size_t len = 0;

	(void)err;
	if (!command_resolve(task) || (folder && !append_name(task)))
		return 0;
	data = put_fetch(task, &len);
	if (data == NULL)
		return 0;
	/* the file is fetched first, so that a slow host holds no cell */
	if (!run_open(task, "user", ACCESS_WRITE, 3 * FILE_OP_MS))
		command_not_done(task);
	else if (folder || look_at_target(task))
		put_store(task, folder ? path_name(task->path) : "", data, len);
	run_close(task);
	return 0;
}
