#include "route.h"

#include <string.h>

#include "answer.h"
#include "submit.h"

#include "../../sandbox/base/text.h"
#include "../../sandbox/store/job.h"
#include "../../sandbox/store/sandbox.h"
#include "../../sandbox/store/view.h"

#define SLASH_COMMAND 1
#define OPTIONS_MAX 4
#define EDITOR_INPUT_MAX 4000 /* code points of a pre-filled input */

/* Where in the job an option goes. */
enum target {
	TO_PATH,
	TO_TEXT,
	TO_INPUT,
	TO_PAGE,
	TO_SHARE,
	TO_RECURSIVE,
	TO_ATTACHMENT,
};

struct option_rule {
	const char *name;
	enum value_type type;
	enum target target;
	size_t max; /* bytes of a text */
	bool required;
};

struct command {
	const char *name;
	const char *sub;
	enum job_kind kind;
	bool needs_sandbox;
	/* What to do instead of queueing the job; true: the reply is made. */
	bool (*instead)(const struct context *context,
	    const struct interaction *in, struct job *job,
	    const struct sandbox *sandbox, struct reply *reply);
	struct option_rule options[OPTIONS_MAX];
};

/* ---- what is special about a command ---- */

/* Without code and file the first answer is an editor. */
static bool
py_instead(const struct context *context, const struct interaction *in,
    struct job *job, const struct sandbox *sandbox, struct reply *reply)
{
	struct view view = { .kind = VIEW_PY, .share = job->share };

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
	struct view view = { .kind = VIEW_DELETE };

	(void)job;
	memcpy(view.path, sandbox->id, sizeof(sandbox->id));
	if (submit_view(context, in, &view, reply))
		reply_set(reply, answer_delete_question(in->locale, view.id),
		    "question");
	return true;
}

/* ---- the table ---- */

#define PATH(n, r) \
	{ \
		n, VALUE_STRING, TO_PATH, ROUTE_PATH_MAX, r \
	}
#define TEXT(n, m, r) \
	{ \
		n, VALUE_STRING, TO_TEXT, m, r \
	}

static const struct command commands[] = {
	{ "il", "create", JOB_CREATE, false, NULL, { { 0 } } },
	{ "il", "py", JOB_PY, true, py_instead,
	    { TEXT("code", ROUTE_CODE_MAX, false), PATH("file", false),
		{ "stdin", VALUE_STRING, TO_INPUT, ROUTE_CODE_MAX, false },
		{ "share", VALUE_BOOLEAN, TO_SHARE, 0, false } } },
	{ "il", "look", JOB_LOOK, true, NULL,
	    { PATH("path", false),
		{ "page", VALUE_INTEGER, TO_PAGE, 0, false } } },
	{ "il", "write", JOB_WRITE, true, write_instead,
	    { PATH("name", true), TEXT("content", ROUTE_CONTENT_MAX, false) } },
	{ "il", "rm", JOB_RM, true, NULL,
	    { PATH("name", true),
		{ "recursive", VALUE_BOOLEAN, TO_RECURSIVE, 0, false } } },
	{ "il", "pip", JOB_PIP, true, NULL,
	    { TEXT("packages", ROUTE_PACKAGES_MAX, true) } },
	{ "il", "get", JOB_GET, true, NULL, { PATH("path", true) } },
	{ "il", "put", JOB_PUT, true, NULL,
	    { { "file", VALUE_ATTACHMENT, TO_ATTACHMENT, 0, true },
		PATH("path", false) } },
	{ "il", "delete", JOB_DELETE, true, delete_instead, { { 0 } } },
	{ "il", "health", JOB_HEALTH, false, NULL, { { 0 } } },
	{ "health", "", JOB_HEALTH, false, NULL, { { 0 } } },
};

static const struct command *
find_command(const struct interaction *in)
{
	if (in->command_type != SLASH_COMMAND)
		return NULL;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, in->name) == 0 &&
		    strcmp(commands[i].sub, in->sub) == 0)
			return &commands[i];
	return NULL;
}

static const struct option_rule *
find_option(const struct command *command,
    const struct interaction_value *value)
{
	for (int i = 0; i < OPTIONS_MAX; i++) {
		const struct option_rule *rule = &command->options[i];

		if (rule->name != NULL && rule->type == value->type &&
		    strcmp(rule->name, value->name) == 0)
			return rule;
	}
	return NULL;
}

/* ---- from options to a job ---- */

/* Each returns true, or false and the reply says what is wrong. */

static bool
take_text(const struct interaction *in, const struct option_rule *rule,
    const struct interaction_value *value, char **slot, struct reply *reply)
{
	bool nul = strlen(value->text) != value->len;

	if (rule->target == TO_PATH && (nul || value->len > rule->max))
		submit_refuse(in, TEXT_NOT_INSIDE, "", "not-inside", reply);
	else if (nul)
		submit_refuse(in, TEXT_NUL, rule->name, "nul", reply);
	else if (value->len > rule->max)
		submit_refuse(in, TEXT_TOO_LONG, rule->name, "too-long", reply);
	else if (value->len == 0 && rule->required)
		submit_refuse(in, TEXT_MISSING_OPTION, rule->name,
		    "missing-option", reply);
	else {
		submit_copy(slot, value->text);
		return true;
	}
	return false;
}

static bool
take_attachment(const struct interaction *in, const struct option_rule *rule,
    const struct interaction_value *value, struct job *job, struct reply *reply)
{
	const struct interaction_attachment *a = interaction_attachment(in,
	    value->number);

	if (a == NULL) {
		submit_refuse(in, TEXT_NO_ATTACHMENT, "", "no-attachment",
		    reply);
		return false;
	}
	if (strlen(a->url) > ROUTE_URL_MAX ||
	    strlen(a->name) > ROUTE_NAME_MAX) {
		submit_refuse(in, TEXT_TOO_LONG, rule->name, "too-long", reply);
		return false;
	}
	submit_copy(&job->attachment_url, a->url);
	submit_copy(&job->attachment_name, a->name);
	job->attachment_size = a->size;
	return true;
}

static bool
take_option(const struct interaction *in, const struct option_rule *rule,
    const struct interaction_value *value, struct job *job, struct reply *reply)
{
	switch (rule->target) {
	case TO_PATH:
		return take_text(in, rule, value, &job->path, reply);
	case TO_TEXT:
		job->has_text = true;
		return take_text(in, rule, value, &job->text, reply);
	case TO_INPUT:
		return take_text(in, rule, value, &job->input, reply);
	case TO_ATTACHMENT:
		return take_attachment(in, rule, value, job, reply);
	case TO_SHARE:
		job->share = value->flag;
		return true;
	case TO_RECURSIVE:
		job->recursive = value->flag;
		return true;
	case TO_PAGE:
		job->page = value->number;
		if (job->page >= 1 && job->page <= ROUTE_PAGE_MAX)
			return true;
		submit_refuse(in, TEXT_BAD_NUMBER, rule->name, "bad-number",
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
		const struct option_rule *rule = find_option(command, value);

		if (rule == NULL) {
			submit_refuse(in, TEXT_UNKNOWN_OPTION, value->name,
			    "unknown-option", reply);
			return false;
		}
		if (!take_option(in, rule, value, job, reply))
			return false;
	}
	for (int i = 0; i < OPTIONS_MAX; i++) {
		const struct option_rule *rule = &command->options[i];

		if (!rule->required ||
		    interaction_value(in, rule->name) != NULL)
			continue;
		submit_refuse(in, TEXT_MISSING_OPTION, rule->name,
		    "missing-option", reply);
		return false;
	}
	return true;
}

static void
route_command(const struct context *context, const struct interaction *in,
    struct job *job, struct reply *reply)
{
	const struct command *command = find_command(in);
	struct sandbox sandbox = { .id = "" };

	if (command == NULL) {
		submit_refuse(in, TEXT_UNKNOWN_COMMAND, "", "unknown-command",
		    reply);
		return;
	}
	job->kind = command->kind;
	job->answer = ANSWER_DEFERRED;
	job->page = 1;
	if (!take_options(in, command, job, reply))
		return;
	if (command->needs_sandbox &&
	    !submit_sandbox(context, in, &sandbox, reply))
		return;
	if (command->instead != NULL &&
	    command->instead(context, in, job, &sandbox, reply))
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
