/* SPDX-License-Identifier: MIT */
#include "py_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/log.h"
#include "../../base/utf8.h"
#include "../../store/editor.h"
#include "../../store/script.h"
#include "../render/render_view.h"
#include "../render/terminal.h"
#include "command.h"

/* Of output that is too long the beginning and the end are kept. */
#define OUTPUT_HEAD (VIEW_TEXT_MAX / 8 * 5)
#define OUTPUT_TAIL (VIEW_TEXT_MAX / 4)

int
py_view_load(struct task *task, struct view *view, struct view_texts *texts,
    struct err *err)
{
	const struct job *job = task->job;
	int found = view_load(task->worker->db, job->view_id, view, texts, err);

	if (found < 0)
		return -1;
	if (found == 0 && view->kind == JOB_PY &&
	    (view->user_id == job->user_id ||
		(job->kind == JOB_PY_TRY && view->share != 0)))
		return 0;
	if (found == 0)
		view_texts_release(texts);
	buf_adds(&task->message.lead, _(TEXT_CODE_GONE));
	task->outcome = "gone";
	return 1;
}

static void
replace(char **slot, char **text)
{
	free(*slot);
	*slot = *text;
	*text = NULL;
}

int
py_view_again(struct task *task, struct err *err)
{
	struct job *job = task->job;
	auto_view_texts struct view_texts texts = { 0 };
	auto_free char *path = NULL;
	auto_free char *version = NULL;
	struct view view;
	int result = py_view_load(task, &view, &texts, err);

	if (result != 0)
		return result;
	if (texts.text[0] == '\0' && view.path[0] == '\0') {
		buf_adds(&task->message.lead, _(TEXT_CODE_GONE));
		task->outcome = "gone";
		return 1;
	}
	path = xstrdup(view.path);
	version = xstrdup(view.version);
	job->has_text = texts.text[0] != '\0';
	replace(&job->text, &texts.text);
	replace(&job->path, &path);
	if (job->input[0] == '\0')
		replace(&job->input, &texts.input);
	if (job->version[0] == '\0')
		replace(&job->version, &version);
	job->timeit = view.timeit;
	job->keep = view.keep;
	job->share = view.share != 0;
	return 0;
}

/* What it printed, as it is shown, within the room that there is for it. */
static char *
shown_output(const struct buf *printed)
{
	auto_buf struct buf shown = BUF_INIT(TERMINAL_SHOWN_MAX(printed->len));
	auto_buf struct buf kept = BUF_INIT(VIEW_TEXT_MAX + 1);
	size_t head = OUTPUT_HEAD;
	size_t tail;

	(void)terminal_show(&shown, buf_str(printed), printed->len,
	    TERMINAL_COLOURS);
	if (shown.len <= VIEW_TEXT_MAX)
		return buf_steal(&shown, NULL);
	tail = shown.len - OUTPUT_TAIL;
	while (head > 0 && utf8_is_tail(shown.data[head]))
		head--;
	while (tail < shown.len && utf8_is_tail(shown.data[tail]))
		tail++;
	buf_add(&kept, shown.data, head);
	buf_adds(&kept, "\n…\n");
	buf_add(&kept, shown.data + tail, shown.len - tail);
	return buf_steal(&kept, NULL);
}

/* False: a request for the file would be refused for the same reason, or its
 * path does not lead to itself. */
static bool
can_be_fetched(const struct collected_left *left)
{
	char path[PATH_SIZE];
	bool refused = left->why == LEFT_OUT_SIZE ||
	    left->why == LEFT_OUT_UNREADABLE || left->why == LEFT_OUT_KIND ||
	    left->why == LEFT_OUT_GONE;

	return !refused && !left->displayed && left->size > 0 &&
	    path_resolve("", left->path, path) == PATH_OK &&
	    strcmp(path, left->path) == 0;
}

/* Files that are in the sandbox and not in the message.  Before them the folder
 * of those that are told in one line (view.h). */
static char *
list_files(const struct task *task)
{
	const struct collect *collect = &task->collect;
	auto_buf struct buf list = BUF_INIT(VIEW_TEXT_MAX + 1);
	int count = 0;

	if (collect->folded) {
		buf_addf(&list, ".%s%s//",
		    collect->folder[0] != '\0' ? "/" : "", collect->folder);
		count++;
	}
	for (size_t i = 0; i < collect->left_count && task->env.may_attach;
	     i++) {
		const struct collected_left *left = &collect->left[i];

		if (count == VIEW_FILES_MAX || !can_be_fetched(left))
			continue;
		buf_addf(&list, "%s//", left->path);
		count++;
	}
	return list.overflow || count == 0 ? xstrdup("") :
					     buf_steal(&list, NULL);
}

/* Code that can be kept: a NUL or too much of it cannot. */
static bool
can_be_kept(const struct cell_request *request)
{
	return request->source == NULL ||
	    (request->source_len <= SCRIPT_ALL_MAX &&
		strlen(request->source) == request->source_len);
}

void
py_view_keep(struct task *task, const struct cell_request *request, bool again)
{
	const struct job *job = task->job;
	struct db *db = task->worker->db;
	struct render_buttons b = {
		.config = task->worker->config,
		.may_attach = task->env.may_attach,
	};
	auto_view_texts struct view_texts texts = { 0 };
	struct view view = {
		.id = job->view_id,
		.user_id = job->user_id,
		.kind = JOB_PY,
		.page = 1,
		.share = job->share,
		.timeit = job->timeit,
		.keep = job->keep,
		.texts = &texts,
	};
	struct err err = { 0 };
	int result;

	if (task->taken || !can_be_kept(request))
		return;
	render_need(&b.need, &task->run, &task->collect.output);
	texts.text = xstrdup(request->source != NULL ? request->source : "");
	texts.input = xstrdup(job->input);
	texts.output = shown_output(&task->collect.output);
	texts.files = list_files(task);
	texts.package = xstrdup(b.need.package);
	(void)snprintf(view.version, sizeof(view.version), "%s", job->version);
	if (request->source == NULL)
		memcpy(view.path,
		    *task->elsewhere != '\0' ? task->elsewhere : task->path,
		    sizeof(view.path));
	result = again ? view_set_run(db, &view, &err) :
			 view_insert(db, &view, &err);
	if (result < 0)
		log_err("no buttons: %s job=%" PRId64, err.text, job->id);
	/* it may have been forgotten while it ran */
	if (result != 0)
		return;
	b.view = &view;
	b.elsewhere = task->elsewhere;
	b.cut = texts.output[0] != '\0' && !message_fits(&task->message);
	render_buttons(&task->message, &b);
}

void
py_view_buttons(struct task *task, const struct view *view)
{
	struct render_buttons b = {
		.config = task->worker->config,
		.may_attach = task->env.may_attach,
		.view = view,
	};

	(void)snprintf(b.need.package, sizeof(b.need.package), "%s",
	    view->texts->package);
	render_buttons(&task->message, &b);
}

void
py_view_offer(struct task *task)
{
	auto_view_texts struct view_texts texts = { 0 };
	struct err err = { 0 };
	struct view view;

	if (view_load(task->worker->db, task->job->view_id, &view, &texts,
		&err) != 0)
		return;
	view.texts = &texts;
	py_view_buttons(task, &view);
}

/* ---- editors ---- */

/* What Discord would not give back as it was is left out. */
static json_t *
make_input(const char *input, bool required)
{
	return editor_input("stdin", _("Input (stdin)"),
	    _("What input() will read, if anything"), required,
	    input != NULL && *input != '\0' &&
		    command_is_editable(input, strlen(input)) ?
		input :
		NULL);
}

int
py_view_editor(struct task *task, const char *custom_id, const char *code,
    const char *input, struct err *err)
{
	json_t *inputs = code == NULL ?
	    json_pack("[o]", make_input(input, true)) :
	    json_pack("[o, o]",
		editor_input("code", _("Code"), NULL, true, code),
		make_input(input, false));
	json_auto_t *modal = editor_open(custom_id, _("Run Python"), inputs);

	if (modal != NULL)
		task->editor = json_dumps(modal, JSON_COMPACT);
	if (task->editor == NULL)
		return err_set(err, ERR_INPUT, "no editor for this text");
	task->outcome = "editor";
	return 0;
}
