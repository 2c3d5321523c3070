/* SPDX-License-Identifier: MIT */
/* Programs from options, messages and files, and the menu of a message. */
#include "worker/commands/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "protocol/node_ask.h"
#include "protocol/node_table.h"
#include "store/editor.h"
#include "store/moves.h"
#include "store/job.h"
#include "store/script.h"
#include "worker/commands/source.h"

#define NODE_MS 1500 /* deadline of another node's answer */
_Static_assert(NODE_VIEW_TEXT_MAX <= SOURCE_TEXT_MAX, "what comes has room");

#define MARK "\xef\xbb\xbf" /* "I am UTF-8", at the begin of a file */

bool
program_refuse_many(struct task *task)
{
	return command_say(task, SAY_TOO_MANY_BLOCKS,
	    phrase_count(SOURCE_PIECES_MAX).text, NULL);
}

/* ---- files ---- */

/* Read a file's data, which may be any bytes. */
static bool
read_script(struct task *task, struct source *source, const char *name,
    char *data, size_t len)
{
	static const enum say faults[] = {
		[SOURCE_NOT_JSON] = SAY_NOT_JSON,
		[SOURCE_NO_CELLS] = SAY_NO_CELLS,
		[SOURCE_NO_CODE] = SAY_NO_CODE_CELL,
		[SOURCE_TOO_DEEP] = SAY_TOO_DEEP,
	};
	struct phrase as = phrase_name(name, SCRIPT_SHOWN);

	if (memchr(data, '\0', len) != NULL || !utf8_valid(data, len))
		return command_say(task, SAY_NOT_TEXT, as.text, NULL);
	if (strncmp(data, MARK, strlen(MARK)) == 0)
		data += strlen(MARK);
	source_read(source, data,
	    script_of(name) == SCRIPT_NOTEBOOK ? SOURCE_NOTEBOOK : SOURCE_TEXT);
	if (source->fault != SOURCE_FINE)
		return command_say(task, faults[source->fault], as.text,
		    phrase_number(source->fault_line).text, NULL);
	return !source->too_many || program_refuse_many(task);
}

/* Fetch and read a file. *left: bytes of all files that are still announced. */
static bool
fetch_script(struct task *task, struct source *source, const char *link,
    const char *name, int64_t *left)
{
	int64_t most = script_most(script_of(name));
	auto_free char *data = NULL;
	size_t len = 0;

	data = command_download(task, link, *left < most ? *left : most, &len);
	if (data == NULL)
		return false;
	*left -= (int64_t)len;
	return read_script(task, source, name, data, len);
}

/* Is the file a program?  Its name may decide that; otherwise its text has to
 * look like Python. */
static bool
program_is_python(const char *name, const struct source *source)
{
	enum script script = script_of(name);

	return source->certain ? script != SCRIPT_BINARY :
				 script == SCRIPT_PYTHON;
}

/* Drop the code of prose, but not its languages and its input. */
static void
drop_code(struct source *source)
{
	buf_reset(&source->code);
	source->pieces = 0;
	source->slip.kind = SLIP_NONE;
}

static bool
append_script(struct task *task, struct source *all, const char *link,
    const char *name, int64_t *left)
{
	auto_source struct source one = { .pieces = 0 };

	if (!fetch_script(task, &one, link, name, left))
		return false;
	if (!program_is_python(name, &one))
		drop_code(&one);
	source_append(all, &one);
	return true;
}

/* Append the files of the job, a link and a name a line.  They are as long as
 * announced. */
static bool
append_scripts(struct task *task, struct source *all)
{
	/* a worker's job owns its texts */
	char *links = (char *)(uintptr_t)task->job->attachment_url;
	char *names = (char *)(uintptr_t)task->job->attachment_name;
	int64_t left = task->job->attachment_size;
	char *link;

	while ((link = strsep(&links, "\n")) != NULL) {
		const char *name = strsep(&names, "\n");

		if (!append_script(task, all, link, name == NULL ? "" : name,
			&left))
			return false;
	}
	return left == 0 || command_not_as_announced(task);
}

/* ---- messages ---- */

/* Say that there is no code.  name: a file that is to blame, as it is the only
 * one; NULL: the message is. */
static bool
refuse_code(struct task *task, const struct source *source, const char *name)
{
	auto_free char *languages = render_languages(source->others,
	    source->other_count);
	bool marked = source->other_count > 0;

	if (name == NULL)
		return command_say(task,
		    marked ? SAY_NO_CODE_MARKED : SAY_NO_CODE, languages, NULL);
	return command_say(task,
	    marked ? SAY_NOT_PYTHON_MARKED : SAY_NOT_PYTHON,
	    phrase_name(name, SCRIPT_SHOWN).text, languages, NULL);
}

/* Copy the code of a run, and its options. */
static void
program_copy_run(struct job *job, struct source *source,
    const struct node_view *run)
{
	source_read(source, run->text, SOURCE_TEXT);
	buf_reset(&source->code);
	buf_adds(&source->code, run->text);
	buf_reset(&source->input);
	buf_adds(&source->input, run->input);
	source->other_count = 0;
	if (job->version[0] == '\0')
		command_set(&job->version, xstrdup(run->version));
	job->timeit = run->timeit;
}

/* Copy the run from this node's row.  1: there is none that the user may
 * have. */
static int
find_own_run(struct task *task, int64_t view_id, struct source *source)
{
	struct job *job = task->job;
	struct view *view = &task->view;
	struct view_texts *texts = &task->texts;
	int found = command_load_view(task, view_id);
	bool code;

	if (found != 0)
		return found;
	/* a file is in one sandbox */
	code = *texts->text != '\0';
	if (view->kind != JOB_PY || (!code && view->path[0] == '\0') ||
	    (view->user_id != job->user_id && (!code || view->share == 0)))
		return 1;
	if (!code)
		command_set(&job->path, xprintf("~/%s", view->path));
	program_copy_run(job, source,
	    &(struct node_view){
		texts->text, texts->input, view->version, view->timeit });
	return 0;
}

/* Find the other node that has the row, by the table or by the move of its
 * slot; NULL: this node has it. */
static const struct node_entry *
find_node(struct worker *worker, int64_t view_id)
{
	char to[MOVES_NODE_MAX + 1];
	int slot = row_id_slot(view_id);
	const struct node_entry *other;
	struct err ignored;

	if (worker->nodes == NULL || slot < 0)
		return NULL;
	node_table_refresh(worker->nodes, clock_monotonic_ms());
	other = node_table_other(worker->nodes, slot);
	if (other == NULL &&
	    moves_find(worker->db, slot, MOVES_ALL, to, &ignored) == MOVE_GONE)
		other = node_table_named(worker->nodes, to);
	return other;
}

/* Copy a shared run from another node's row (protocol/node_ask.h).  -1: that
 * node does not answer, and the message says so. */
static int
find_shared_run(struct task *task, const struct node_entry *node,
    int64_t view_id, struct source *source)
{
	auto_free char *request = xprintf("GET " NODE_VIEWS "%" PRId64,
	    view_id);
	auto_free char *user = xprintf("Inline-User: %" PRId64 "\r\n",
	    task->job->user_id);
	auto_node_ask struct node_ask ask = NODE_ASK_INIT(NODE_VIEW_MAX,
	    clock_monotonic_ms() + NODE_MS);
	auto_node_view struct node_view run = { .text = NULL };
	int status = 0;
	struct err err;

	if (node_ask_begin(&ask, task->worker->config, node->address, request,
		user, &err) == 0 &&
	    node_ask_head(&ask, &err) == 0 && node_ask_body(&ask, &err) == 0)
		status = ask.answer.status;
	if (status == 404)
		return 1;
	if (status == 200 &&
	    node_view_read(&run, buf_str(&ask.body), ask.body.len, &err) == 0) {
		program_copy_run(task->job, source, &run);
		return 0;
	}
	if (status > 0 && status != 200)
		(void)err_set(&err, ERR_UNAVAILABLE, "status %d", status);
	log_warn("node %s does not say what view %" PRId64 " is: %s",
	    node->name, view_id, err.text);
	(void)command_say(task, SAY_CODE_AWAY, NULL);
	return -1;
}

static bool
program_find_code(struct task *task, bool ours, struct source *source)
{
	const struct job *job = task->job;
	const char *name = job->attachment_name;
	enum script script = job->attachment_url[0] != '\0' &&
		strchr(name, '\n') == NULL ?
	    script_of(name) :
	    SCRIPT_BINARY;

	source_read(source, job->text, SOURCE_TEXT);
	if (ours && source->unmarked)
		source->certain = false;
	if (!source->certain)
		drop_code(source);
	/* text files are read only if there is no other code */
	if (job->attachment_url[0] != '\0' &&
	    (source->pieces == 0 || script_of(name) < SCRIPT_TEXT) &&
	    !append_scripts(task, source))
		return false;
	if (source->too_many || source->code.overflow)
		return program_refuse_many(task);
	/* a text that is the only file is named */
	return source->pieces > 0 ||
	    refuse_code(task, source,
		source->other_count == 0 &&
			(script == SCRIPT_TEXT || script == SCRIPT_UNKNOWN) ?
		    name :
		    NULL);
}

/* The code of the run that the message answers has precedence, if the user may
 * have it.  Without it only blocks marked as Python count in that message, as
 * others may be output. */
bool
program_find(struct task *task, int64_t view_id, struct source *source)
{
	const struct node_entry *node;
	int found = 1;

	if (view_id != 0) {
		node = find_node(task->worker, view_id);
		found = node != NULL ?
		    find_shared_run(task, node, view_id, source) :
		    find_own_run(task, view_id, source);
	}
	return found == 0 ||
	    (found == 1 && program_find_code(task, view_id != 0, source));
}

bool
program_read_file(struct task *task, struct source *source)
{
	struct job *job = task->job;
	const char *name = job->attachment_name;
	int64_t left = job->attachment_size;

	if (!fetch_script(task, source, job->attachment_url, name, &left) ||
	    (left != 0 && !command_not_as_announced(task)))
		return false;
	return program_is_python(name, source) ||
	    refuse_code(task, source, name);
}

/* ---- the menu of a message ---- */

/* The view of the program that the job's options belong to. */
static struct view
edit_view(const struct job *job)
{
	struct view view = {
		.kind = JOB_PY,
		.user_id = job->user_id,
		.timeit = job->timeit,
	};

	(void)snprintf(view.version, sizeof(view.version), "%s", job->version);
	return view;
}

static bool
edit_open(struct task *task, const char *code, const char *input)
{
	auto_free char *custom_id = NULL;
	struct view view = edit_view(task->job);

	if (view_insert(task->worker->db, &view, &task->err) < 0)
		return false;
	custom_id = action_id(ACTION_PY, view.id);
	return py_open_editor(task, custom_id, code, input);
}

/* Load the code that was found in the message earlier, if any, from the job's
 * view.  *run: the view of the run that the message answers, or 0.  1: this
 * person has no such view. */
static int
load_code(struct task *task, struct source *source, char **code, int64_t *run)
{
	struct job *job = task->job;
	const struct view *view = &task->view;
	int found = command_load_view(task, job->view_id);

	if (found != 0)
		return found;
	if (view->kind != JOB_MESSAGE_EDIT || view->user_id != job->user_id)
		return 1;
	*run = view->page;
	if (*task->texts.text == '\0')
		return 0;
	*code = xstrdup(task->texts.text);
	source->input = (struct buf)BUF_INIT(SOURCE_TEXT_MAX);
	buf_adds(&source->input, task->texts.input);
	command_set(&job->version, xstrdup(view->version));
	job->timeit = view->timeit;
	return 0;
}

/* Store the code in the job's view, for its button. */
static bool
edit_keep(struct task *task, char *code, const struct source *source)
{
	auto_free char *input = xstrdup(buf_str(&source->input));
	struct view_texts texts = { .text = code, .input = input };
	struct view view = edit_view(task->job);

	view.id = task->job->view_id;
	view.texts = &texts;
	return view_set(task->worker->db, STATEMENT_VIEW_SET_PROGRAM, &view,
		   &task->err) >= 0;
}

/* Find the code of the message, or of the file whose run it answers. */
static bool
edit_find(struct task *task, int64_t run, struct source *source, char **code)
{
	struct buf *from = &source->code;

	if (!program_find(task, run, source))
		return false;
	if (task->job->path[0] != '\0') {
		if (task->sandbox.id[0] == '\0')
			return command_say(task, SAY_CODE_GONE, NULL);
		if (!command_resolve(task) ||
		    !command_read_editable(task, false))
			return false;
		from = &task->collect.files[0].data;
	}
	*code = buf_steal(from, NULL);
	return true;
}

/* "Edit and run" of a message's menu.  If the editor comes too late, a button
 * asks again.  The code is stored for that, as links to files expire. */
bool
cmd_message_edit(struct task *task)
{
	auto_source struct source source = { .pieces = 0 };
	auto_free char *code = NULL;
	int64_t run = 0;
	int found = load_code(task, &source, &code, &run);

	if (found < 0 ||
	    (code == NULL &&
		(!edit_find(task, run, &source, &code) ||
		    (found == 0 && !edit_keep(task, code, &source)))))
		return false;
	if (text_codepoints(code, strlen(code)) <= EDITOR_POINTS)
		return edit_open(task, code, buf_str(&source.input));
	/* the code can be edited as a file */
	render_long_code(&task->env, code);
	task->outcome = "too long to edit";
	return false;
}

/* "Run Python" of a message's menu: it finds the code, and runs it as `/il py`
 * does. */
bool
cmd_message_run(struct task *task)
{
	auto_source struct source source = { .pieces = 0 };

	if (!program_find(task, task->job->view_id, &source))
		return false;
	task->job->view_id = 0; /* the run gets a view of its own */
	return command_choose_version(task) && py_run_source(task, &source);
}
