#include "route.h"

#include <string.h>

#include "answer.h"
#include "submit.h"

#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/frame_limits.h"
#include "../../sandbox/store/job.h"
#include "../../sandbox/store/sandbox.h"
#include "../../sandbox/store/view.h"

#define SLASH_COMMAND 1
#define PAGE_MAX 1000000
#define URL_MAX 2048
#define EDITOR_INPUT_MAX 4000 /* code points of a pre-filled input */

_Static_assert(COMMAND_PATH_MAX == LIMIT_PATH, "what is taken can be sent");

/* What to do instead of queueing a command's job; true: the reply is made. */
typedef bool instead_fn(const struct context *context,
    const struct interaction *in, struct job *job,
    const struct sandbox *sandbox, struct reply *reply);

/* ---- what is special about a command ---- */

/* Without code and file the first answer is an editor. */
static bool
py_instead(const struct context *context, const struct interaction *in,
    struct job *job, const struct sandbox *sandbox, struct reply *reply)
{
	struct view view = { .kind = JOB_PY, .share = job->share };

	(void)sandbox;
	if (job->has_text && job->path[0] != '\0') {
		submit_refuse(in, TEXT_CODE_AND_FILE, "", "code-and-file",
		    reply);
		return true;
	}
	if (job->has_text || job->path[0] != '\0')
		return false;
	if (text_codepoints(job->input, strlen(job->input)) >
	    EDITOR_INPUT_MAX) {
		submit_refuse(in, TEXT_TOO_LONG, "stdin", "too-long", reply);
		return true;
	}
	if (submit_view(context, in, &view, reply))
		reply_set(reply, answer_editor(in->locale, view.id, job->input),
		    "editor");
	return true;
}

/* Without content a worker opens the editor, filled with what the file holds:
 * only a cell may read it. */
static bool
write_instead(const struct context *context, const struct interaction *in,
    struct job *job, const struct sandbox *sandbox, struct reply *reply)
{
	(void)context;
	(void)in;
	(void)sandbox;
	(void)reply;
	if (!job->has_text) {
		job->kind = JOB_WRITE_EDIT;
		job->answer = ANSWER_CALLBACK;
	}
	return false;
}

/* Ask first.  The question is about this sandbox and no later one. */
static bool
delete_instead(const struct context *context, const struct interaction *in,
    struct job *job, const struct sandbox *sandbox, struct reply *reply)
{
	struct view view = { .kind = JOB_DELETE };

	(void)job;
	memcpy(view.path, sandbox->id, sizeof(sandbox->id));
	if (submit_view(context, in, &view, reply))
		reply_set(reply, answer_delete_question(in->locale, view.id),
		    "question");
	return true;
}

static instead_fn *const instead[JOB_UNKNOWN] = {
	[JOB_PY] = py_instead,
	[JOB_WRITE] = write_instead,
	[JOB_DELETE] = delete_instead,
};

/* ---- finding ---- */

/* JOB_UNKNOWN: there is no such command.  Those that Discord shows beside /il
 * are understood under it, too. */
static enum job_kind
find_command(const struct interaction *in)
{
	bool under = strcmp(in->name, "il") == 0;
	enum job_kind kind = job_kind_find(under ? in->sub : in->name);

	if (in->command_type != SLASH_COMMAND || kind == JOB_UNKNOWN ||
	    commands[kind].place == COMMAND_NOWHERE)
		return JOB_UNKNOWN;
	if (!under &&
	    (commands[kind].place != COMMAND_ROOT || *in->sub != '\0'))
		return JOB_UNKNOWN;
	return kind;
}

static const struct command_option *
find_option(const struct command *command,
    const struct interaction_value *value)
{
	for (int i = 0; i < COMMAND_OPTIONS_MAX; i++) {
		const struct command_option *option = &command->options[i];

		if (option->name != NULL &&
		    (int)option->type == (int)value->type &&
		    strcmp(option->name, value->name) == 0)
			return option;
	}
	return NULL;
}

/* ---- from options to a job ---- */

/* Each returns true, or false and the reply says what is wrong. */

static bool
take_text(const struct interaction *in, const struct command_option *option,
    const struct interaction_value *value, char **slot, struct reply *reply)
{
	bool nul = strlen(value->text) != value->len;

	if (option->target == OPTION_TO_PATH &&
	    (nul || value->len > option->bytes))
		submit_refuse(in, TEXT_NOT_INSIDE, "", "not-inside", reply);
	else if (nul)
		submit_refuse(in, TEXT_NUL, option->name, "nul", reply);
	else if (value->len > option->bytes)
		submit_refuse(in, TEXT_TOO_LONG, option->name, "too-long",
		    reply);
	else if (value->len == 0 && option->required)
		submit_refuse(in, TEXT_MISSING_OPTION, option->name,
		    "missing-option", reply);
	else {
		submit_copy(slot, value->text);
		return true;
	}
	return false;
}

static bool
take_attachment(const struct interaction *in,
    const struct command_option *option, const struct interaction_value *value,
    struct job *job, struct reply *reply)
{
	const struct interaction_attachment *a = interaction_attachment(in,
	    value->number);

	if (a == NULL) {
		submit_refuse(in, TEXT_NO_ATTACHMENT, "", "no-attachment",
		    reply);
		return false;
	}
	if (strlen(a->url) > URL_MAX || strlen(a->name) > LIMIT_NAME) {
		submit_refuse(in, TEXT_TOO_LONG, option->name, "too-long",
		    reply);
		return false;
	}
	submit_copy(&job->attachment_url, a->url);
	submit_copy(&job->attachment_name, a->name);
	job->attachment_size = a->size;
	return true;
}

static bool
take_option(const struct interaction *in, const struct command_option *option,
    const struct interaction_value *value, struct job *job, struct reply *reply)
{
	switch (option->target) {
	case OPTION_TO_PATH:
		return take_text(in, option, value, &job->path, reply);
	case OPTION_TO_TEXT:
		job->has_text = true;
		return take_text(in, option, value, &job->text, reply);
	case OPTION_TO_INPUT:
		return take_text(in, option, value, &job->input, reply);
	case OPTION_TO_ATTACHMENT:
		return take_attachment(in, option, value, job, reply);
	case OPTION_TO_SHARE:
		job->share = value->flag;
		return true;
	case OPTION_TO_RECURSIVE:
		job->recursive = value->flag;
		return true;
	case OPTION_TO_PAGE:
		job->page = value->number;
		if (job->page >= 1 && job->page <= PAGE_MAX)
			return true;
		submit_refuse(in, TEXT_BAD_NUMBER, option->name, "bad-number",
		    reply);
		return false;
	}
	return false;
}

static bool
take_options(const struct interaction *in, const struct command *command,
    struct job *job, struct reply *reply)
{
	for (size_t i = 0; i < in->value_count; i++) {
		const struct interaction_value *value = &in->values[i];
		const struct command_option *option = find_option(command,
		    value);

		if (option == NULL) {
			submit_refuse(in, TEXT_UNKNOWN_OPTION, value->name,
			    "unknown-option", reply);
			return false;
		}
		if (!take_option(in, option, value, job, reply))
			return false;
	}
	for (int i = 0; i < COMMAND_OPTIONS_MAX; i++) {
		const struct command_option *option = &command->options[i];

		if (!option->required ||
		    interaction_value(in, option->name) != NULL)
			continue;
		submit_refuse(in, TEXT_MISSING_OPTION, option->name,
		    "missing-option", reply);
		return false;
	}
	return true;
}

static void
route_command(const struct context *context, const struct interaction *in,
    struct job *job, struct reply *reply)
{
	enum job_kind kind = find_command(in);
	struct sandbox sandbox = { .id = "" };

	if (kind == JOB_UNKNOWN) {
		submit_refuse(in, TEXT_UNKNOWN_COMMAND, "", "unknown-command",
		    reply);
		return;
	}
	job->kind = kind;
	job->answer = ANSWER_DEFERRED;
	job->page = 1;
	if (!take_options(in, &commands[kind], job, reply))
		return;
	if (commands[kind].needs >= COMMAND_NEEDS_OWNER &&
	    !submit_sandbox(context, in, &sandbox, reply))
		return;
	if (instead[kind] != NULL &&
	    instead[kind](context, in, job, &sandbox, reply))
		return;
	submit_job(context, in, job, reply);
}

void
route(const struct context *context, const struct interaction *in,
    struct reply *reply)
{
	struct job job;

	if (in->type == INTERACTION_AUTOCOMPLETE) {
		reply_set(reply, answer_no_choices(), "no-choices");
		return;
	}
	if (context->db == NULL) {
		submit_fault(in, "no-database", reply);
		return;
	}
	if (in->type != INTERACTION_COMMAND) {
		route_action(context, in, reply);
		return;
	}
	submit_init(&job);
	route_command(context, in, &job, reply);
	job_release(&job);
}
