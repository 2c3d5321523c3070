#include "command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../../base/clock.h"
#include "../../base/err.h"
#include "../../base/text.h"
#include "../../base/utf8.h"
#include "../../store/view.h"
#include "../render/collect.h"
#include "../worker.h"

#define EDIT_POINTS 4000 /* what the modal's input takes */
#define EDIT_BYTES (4 * EDIT_POINTS)
#define TITLE_MOST 45
#define CALLBACK_MODAL 9
#define LABEL 18
#define TEXT_INPUT 4

/* Would the editor give it back as it was?  Discord drops control characters
 * and may change line ends. */
static bool
is_editable(const struct buf *data)
{
	if (!utf8_valid(buf_str(data), data->len) ||
	    text_codepoints(buf_str(data), data->len) > EDIT_POINTS)
		return false;
	for (size_t i = 0; i < data->len; i++) {
		unsigned char c = (unsigned char)data->data[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* A title or label: what fits of it, one line, never empty. */
static void
make_label(struct buf *out, const char *prefix, const char *name)
{
	auto_buf struct buf clean = BUF_INIT(PATH_SIZE * 4);

	buf_adds(&clean, prefix);
	text_add_clean(&clean, name, strlen(name));
	for (size_t i = 0; i < clean.len; i++)
		if (clean.data[i] == '\n' || clean.data[i] == '\t')
			clean.data[i] = ' ';
	buf_add(out, buf_str(&clean),
	    text_prefix(buf_str(&clean), clean.len, TITLE_MOST));
}

static char *
make_modal(const char *path, int64_t view_id, const struct buf *data)
{
	auto_buf struct buf title = BUF_INIT(PATH_SIZE * 4);
	auto_buf struct buf label = BUF_INIT(PATH_SIZE * 4);
	auto_buf struct buf id = BUF_INIT(64);
	json_t *input = json_pack("{s:i, s:s, s:i, s:b, s:i}", "type",
	    TEXT_INPUT, "custom_id", "content", "style", 2, "required", 0,
	    "max_length", EDIT_POINTS);
	json_auto_t *modal = NULL;

	make_label(&title, "Edit ", path_name(path));
	make_label(&label, "~/", path);
	buf_addf(&id, "%s:%" PRId64, command_actions[ACTION_WRITE].name,
	    view_id);
	if (data->len > 0)
		json_object_set_new(input, "value",
		    json_stringn(buf_str(data), data->len));
	modal = json_pack("{s:i, s:{s:s, s:s, s:[{s:i, s:s, s:o}]}}", "type",
	    CALLBACK_MODAL, "data", "custom_id", buf_str(&id), "title",
	    buf_str(&title), "components", "type", LABEL, "label",
	    buf_str(&label), "component", input);
	return modal == NULL ? NULL : json_dumps(modal, JSON_COMPACT);
}

static int
open_editor(struct task *task, const char *path, const struct buf *data,
    struct err *err)
{
	struct view view = { .kind = JOB_WRITE, .user_id = task->job->user_id };

	memcpy(view.path, path, strlen(path) + 1);
	if (view_insert(task->worker->db, &view, err) < 0)
		return -1;
	task->callback = make_modal(path, view.id, data);
	if (task->callback == NULL)
		return err_set(err, ERR_INPUT, "no editor for this text");
	command_set_outcome(task, "editor");
	return 0;
}

static int
finish(struct task *task, const struct run_outcome *outcome,
    const struct collect *collect, const char *path, struct err *err)
{
	const struct buf *data = &collect->files[0].data;
	const struct buf empty = BUF_INIT(1);

	if (outcome_failed_with(outcome, ERROR_NOT_FOUND))
		return open_editor(task, path, &empty, err);
	if (outcome_succeeded(outcome) && collect->file_count == 1 &&
	    is_editable(data))
		return open_editor(task, path, data, err);
	if (outcome_succeeded(outcome) ||
	    outcome_failed_with(outcome, ERROR_TOO_LARGE)) {
		render_not_editable(&task->message, path);
		command_set_outcome(task, "not editable");
		return 0;
	}
	command_not_done(task, outcome, path);
	return 0;
}

int
cmd_write_edit(struct task *task, struct err *err)
{
	int64_t left_ms = task->job->received_ms + CALLBACK_MS -
	    clock_wall_ms();
	struct cell_request request = {
		.op = OP_READ,
		.max_bytes = EDIT_BYTES,
		.wall_ms = left_ms,
	};
	char path[PATH_SIZE];
	struct collect collect;
	struct cell_sink sink = { .event = collect_event, .arg = &collect };
	struct run run;
	int result = 0;

	if (left_ms < 1 || left_ms > CALLBACK_MS)
		return 0; /* it cannot be told any more */
	if (!command_resolve(task, task->job->path, path))
		return 0;
	request.path = path;
	collect_init(&collect, 0, EDIT_BYTES);
	if (run_open(&run, task, "user", ACCESS_TIDY, left_ms, (int)left_ms))
		(void)run_request(&run, &request, left_ms, &sink);
	run_close(&run);
	if (!task->taken)
		result = finish(task, &run.outcome, &collect, path, err);
	collect_release(&collect);
	return result;
}
