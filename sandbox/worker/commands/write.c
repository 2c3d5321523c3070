/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "store/editor.h"
#include "store/view.h"
#include "worker/commands/source.h"

#define EDIT_BYTES (4 * EDITOR_POINTS)
#define TITLE_MOST 45

bool
command_is_editable(const char *text, size_t len)
{
	if (!utf8_valid(text, len) ||
	    text_codepoints(text, len) > EDITOR_POINTS)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* Open the editor with the content of the file. */
static int
write_open_editor(struct task *task, const struct buf *data, struct err *err)
{
	struct view view = { .kind = JOB_WRITE, .user_id = task->job->user_id };
	auto_free char *title = message_line(_("Edit "), path_name(task->path),
	    TITLE_MOST);
	auto_free char *label = message_line("~/", task->path, TITLE_MOST);
	auto_free char *custom_id = NULL;

	memcpy(view.path, task->path, sizeof(task->path));
	if (view_insert(task->worker->db, &view, err) < 0)
		return -1;
	custom_id = editor_id(ACTION_WRITE, view.id);
	return command_open_editor(task, custom_id, title,
	    json_pack("[o]",
		editor_input("content", label, NULL, false,
		    data->len > 0 ? buf_str(data) : NULL)),
	    err);
}

bool
command_read_editable(struct task *task, bool may_miss)
{
	struct cell_request request = {
		.op = OP_READ,
		.path = task->path,
		.max_bytes = EDIT_BYTES,
		.wall_ms = FILE_OP_MS,
	};
	struct collect *collect = &task->collect;
	const struct buf *data = &collect->files[0].data;
	bool good;

	collect_init(collect, 0, EDIT_BYTES);
	/* a cell that has to be started takes longer than Discord waits, but is
	 * warm for the next try */
	run_once(task, "user", &request);
	good = outcome_succeeded(&task->run);
	if (!good)
		collect_release(collect);
	if ((may_miss && outcome_failed_with(&task->run, ERROR_NOT_FOUND)) ||
	    (good && collect->file_count == 1 &&
		command_is_editable(buf_str(data), data->len)))
		return true;
	if (good || outcome_failed_with(&task->run, ERROR_TOO_LARGE)) {
		buf_addf(&task->message.lead, _(TEXT_NOT_EDITABLE),
		    phrase_path(task->path).text);
		task->outcome = "not editable";
		return false;
	}
	(void)command_succeeded(task);
	return false;
}

/* Open an editor; a file that does not exist is edited as an empty one. */
int
cmd_write_edit(struct task *task, struct err *err)
{
	if (!command_resolve_file(task))
		return 0;
	/* a person without a sandbox gets one when the editor comes back */
	return task->sandbox.id[0] == '\0' ||
		command_read_editable(task, true) ?
	    write_open_editor(task, &task->collect.files[0].data, err) :
	    0;
}

int
cmd_write(struct task *task, struct err *err)
{
	struct cell_request request = { .op = OP_WRITE };
	auto_free char *content = source_content(task->job->text,
	    &request.content_len);

	(void)err;
	request.content = content;
	if (!command_resolve_file(task) || !command_do(task, &request))
		return 0;
	render_written(&task->message, task->path, (int64_t)request.content_len,
	    &task->run, &task->env);
	task->outcome = "written";
	return 0;
}
