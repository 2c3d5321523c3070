/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <string.h>

#include "../../base/text.h"
#include "../../base/utf8.h"
#include "../../store/editor.h"
#include "../../store/view.h"

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

/* A title or label: what fits of it, one line, never empty; heap. */
static char *
make_label(const char *prefix, const char *name)
{
	auto_buf struct buf clean = BUF_INIT(PATH_SIZE * 4);

	buf_adds(&clean, prefix);
	text_add_clean(&clean, name, strlen(name));
	for (size_t i = 0; i < clean.len; i++)
		if (clean.data[i] == '\n' || clean.data[i] == '\t')
			clean.data[i] = ' ';
	return xstrndup(buf_str(&clean),
	    text_prefix(buf_str(&clean), clean.len, TITLE_MOST));
}

/* The response that opens the editor. */
static char *
make_modal(const char *path, int64_t view_id, const struct buf *data)
{
	auto_free char *title = make_label(_("Edit "), path_name(path));
	auto_free char *label = make_label("~/", path);
	auto_free char *custom_id = editor_id(ACTION_WRITE, view_id);
	json_auto_t *modal = editor_open(custom_id, title,
	    json_pack("[o]",
		editor_input("content", label, NULL, false,
		    data->len > 0 ? buf_str(data) : NULL)));

	return modal == NULL ? NULL : json_dumps(modal, JSON_COMPACT);
}

/* Open it, with what the file holds. */
static int
open_editor(struct task *task, const struct buf *data, struct err *err)
{
	struct view view = { .kind = JOB_WRITE, .user_id = task->job->user_id };

	memcpy(view.path, task->path, sizeof(task->path));
	if (view_insert(task->worker->db, &view, err) < 0)
		return -1;
	task->editor = make_modal(task->path, view.id, data);
	if (task->editor == NULL)
		return err_set(err, ERR_INPUT, "no editor for this text");
	task->outcome = "editor";
	return 0;
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
	/* should the cell have to be started, that takes longer than Discord
	 * waits: then it is there for the next try */
	run_once(task, "user", ACCESS_TIDY, &request,
	    config_lease_wait_ms(task->worker->config));
	good = outcome_succeeded(&task->run);
	if (!good)
		collect_release(collect);
	if ((may_miss && outcome_failed_with(&task->run, ERROR_NOT_FOUND)) ||
	    (good && collect->file_count == 1 &&
		command_is_editable(buf_str(data), data->len)))
		return true;
	if (good || outcome_failed_with(&task->run, ERROR_TOO_LARGE)) {
		render_not_editable(&task->message, task->path);
		task->outcome = "not editable";
		return false;
	}
	(void)command_succeeded(task);
	return false;
}

/* A file that does not exist is edited as an empty one. */
int
cmd_write_edit(struct task *task, struct err *err)
{
	if (!command_names_file(task) || !command_resolve(task))
		return 0;
	/* who has no sandbox yet gets one when there is something to write */
	return task->sandbox.id[0] == '\0' ||
		command_read_editable(task, true) ?
	    open_editor(task, &task->collect.files[0].data, err) :
	    0;
}
