/* SPDX-License-Identifier: MIT */
/* Buttons and editors: each refers to a view, the row of its owner and of its
 * subject. */
#include "discord/route.h"

#include <string.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "protocol/handover.h"
#include "protocol/node_table.h"
#include "store/editor.h"
#include "store/job.h"

/* Each completes the job of a press, which has the options of the view; that is
 * the invoker's own and of the action's kind.  False: the reply is made. */

static bool
action_none(struct context *c)
{
	(void)c;
	return true;
}

static bool
action_delete_yes(struct context *c)
{
	if (c->view.path[0] != '\0' && !route_sandbox(c))
		return false;
	if (strcmp(c->sandbox.id, c->view.path) != 0)
		return route_refuse(c, TEXT_GONE, "");
	route_job(c);
	return false;
}

static bool
action_delete_no(struct context *c)
{
	reply_set(c->reply, answer_update(text_of(TEXT_DELETE_KEPT)), "kept");
	return false;
}

/* Read the text of an editor's input, if there is one. */
static bool
read_input(struct context *c, const char *name, size_t max, const char **slot)
{
	const struct interaction_value *value = interaction_value(c->in, name);

	return value == NULL || route_text(c, value, max, slot);
}

/* The code of an editor and its standard input. */
static bool
action_code(struct context *c)
{
	struct job *job = &c->job;

	if (!read_input(c, "code", COMMAND_CODE_MAX, &job->text) ||
	    !read_input(c, "stdin", COMMAND_CODE_MAX, &job->input))
		return false;
	if (job->text == NULL ||
	    job->text[strspn(job->text, " \t\r\n")] == '\0')
		return route_refuse(c, TEXT_NO_CODE, "");
	return true;
}

/* The id's number and word are the options of the run. */
static bool
action_py_tried(struct context *c)
{
	struct job *job = &c->job;

	if (job->view_id > EDITOR_TRIED_TIMEIT ||
	    strlen(c->word) > COMMAND_VERSION_MAX)
		return route_refuse(c, TEXT_UNKNOWN_BUTTON, "");
	job->timeit = job->view_id == EDITOR_TRIED_TIMEIT;
	job->version = c->word;
	job->view_id = 0;
	return action_code(c);
}

static bool
action_write(struct context *c)
{
	return read_input(c, "content", COMMAND_CONTENT_MAX, &c->job.text);
}

/* ---- under the answer of a run ---- */

/* The code once more, with another input. */
static bool
action_py_input(struct context *c)
{
	c->job.has_text = false;
	return read_input(c, "stdin", COMMAND_CODE_MAX, &c->job.input);
}

/* The choice in a menu of which one can be chosen; NULL: it is none of ours. */
static const char *
chosen(const struct context *c)
{
	const struct interaction_value *value = &c->in->values[0];

	if (c->in->value_count != 1 || strlen(value->text) != value->len)
		return NULL;
	return value->text;
}

/* The code once more, with another Python. */
static bool
action_py_version(struct context *c)
{
	const char *name = chosen(c);
	struct image_entry entry;

	if (name == NULL || *name == '\0' ||
	    !images_find(c->config->chat_images, name, &entry))
		return route_refuse(c, TEXT_NO_CHOICE, "");
	c->job.version = c->in->values[0].text;
	return true;
}

static bool
action_py_share(struct context *c)
{
	if (!c->in->may_post)
		return route_refuse(c, TEXT_MAY_NOT_POST, "");
	c->job.share = true;
	return true;
}

/* The choice is an index of the view's list of files, which workers read. */
static bool
action_py_file(struct context *c)
{
	const char *number = chosen(c);

	if (number == NULL ||
	    !text_parse_int(number, 1, VIEW_FILES_MAX, &c->job.page))
		return route_refuse(c, TEXT_NO_CHOICE, "");
	return true;
}

/* The folder of the run's files is the first of that list. */
static bool
action_py_zip(struct context *c)
{
	c->job.page = 1;
	return true;
}

/* The path of WRITE_OPEN is as its owner typed it, relative to the current
 * directory; that of LOOK_GO begins with "~" and leads there from any. */
static bool
action_path(struct context *c)
{
	c->job.view_id = 0;
	return true;
}

/* An example of `/il help`, as if its line had been typed. */
static bool
action_example(struct context *c)
{
	struct job *job = &c->job;
	const struct help_example *example;

	if (job->view_id > HELP_EXAMPLES)
		return route_refuse(c, TEXT_UNKNOWN_BUTTON, "");
	example = &help_examples[job->view_id - 1];
	job->kind = example->kind;
	job->view_id = 0;
	job->has_text = example->text != NULL;
	job->text = example->text;
	job->input = example->input;
	job->timeit = example->timeit;
	return true;
}

/* The id is that of the job to be cancelled.  No job is made. */
static bool
action_cancel(struct context *c)
{
	int64_t job_id = c->job.view_id;
	int64_t owner = 0;
	int found = job_owner(c->db, job_id, &owner, &c->reply->err);

	if (found < 0)
		return route_fault(c, "database");
	if (found == 1)
		return route_refuse(c, TEXT_OVER, "");
	if (owner != c->in->user_id)
		return route_refuse(c, TEXT_NOT_YOURS, "");
	if (cancel_ask(c->config, job_id, &c->reply->err) != 0)
		return route_fault(c, "cancel");
	/* the job's own message reports the end in a moment */
	if (c->action == ACTION_CANCEL)
		reply_set(c->reply, xstrdup(ANSWER_JSON_UPDATE), "cancel");
	else
		reply_set(c->reply, answer_update(text_of(TEXT_CANCELLED)),
		    "cancel");
	return false;
}

static bool (*const actions[ACTION_COUNT])(struct context *c) = {
#define ACTION(action, name, type, kind, job, answer, function, step) \
	[ACTION_##action] = action_##function,
#include "store/commands.def"
};

static enum action_type
type_of(const struct interaction *in)
{
	if (in->type == INTERACTION_MODAL)
		return ACTION_EDITOR;
	return in->is_select ? ACTION_SELECT : ACTION_BUTTON;
}

/* Load the view: it must be of the right kind and the invoker's own. */
static bool
load_view(struct context *c, int64_t id, enum job_kind kind)
{
	int found = view_find(c->db, id, &c->view, NULL, &c->reply->err);

	if (found < 0)
		return route_fault(c, "database");
	if (found == 1 || c->view.kind != kind)
		return route_refuse(c,
		    kind == JOB_PY ? TEXT_CODE_GONE : TEXT_GONE, "");
	/* a shared run may be tried by everybody */
	if (c->view.user_id != c->in->user_id &&
	    (c->action != ACTION_PY_TRY || c->view.share == 0))
		return route_refuse(c, TEXT_NOT_YOURS, "");
	return true;
}

/* A submitted modal is the invoker's own, and so is the row of an old id. */
int
route_action_slot(const struct interaction *in)
{
	int64_t id = 0;
	const char *word;

	if (action_parse(in->custom_id, type_of(in), &id, &word) ==
	    ACTION_COUNT)
		return -1;
	if (in->type == INTERACTION_MODAL || id < ROW_ID_FIRST)
		return slot_of(in->user_id);
	return row_id_slot(id);
}

void
route_action(struct context *c)
{
	static const enum job_answer answers[] = {
		[ACTION_TO_UPDATE] = ANSWER_DEFERRED_UPDATE,
		[ACTION_TO_MESSAGE] = ANSWER_DEFERRED,
		[ACTION_TO_EDITOR] = ANSWER_EDITOR,
	};
	int64_t view_id = 0;
	enum action action = action_parse(c->in->custom_id, type_of(c->in),
	    &view_id, &c->word);
	const struct command_action *row = &command_actions[action];

	if (action == ACTION_COUNT) {
		(void)route_refuse(c, TEXT_UNKNOWN_BUTTON, "");
		return;
	}
	c->action = action;
	if (row->kind != JOB_UNKNOWN && !load_view(c, view_id, row->kind))
		return;
	c->job.kind = row->job;
	c->job.answer = answers[row->answer];
	c->job.has_text = row->type == ACTION_EDITOR;
	c->job.view_id = c->view.id = view_id;
	c->job.path = c->view.path;
	c->job.version = c->view.version;
	c->job.timeit = c->view.timeit;
	c->job.keep = c->view.keep;
	/* a repeated run is shown to the same people */
	c->job.share = c->view.share != 0 &&
	    commands[row->job].needs == COMMAND_NEEDS_SANDBOX;
	if (c->view.page + row->step > 1)
		c->job.page = c->view.page + row->step;
	if (actions[action](c) &&
	    (commands[c->job.kind].needs != COMMAND_NEEDS_OWNER ||
		route_sandbox(c)))
		route_job(c);
}
