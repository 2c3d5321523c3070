/* SPDX-License-Identifier: MIT */
#include "discord/route.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "discord/pending.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "protocol/frame_limits.h"
#include "protocol/node_table.h"
#include "store/script.h"

enum { SLASH_COMMAND = 1, MESSAGE_COMMAND = 3 };
#define MESSAGE_MAX 8000
#define PAGE_MAX 1000000
#define URL_MAX 2048
#define MESSAGE_POINTS 4000 /* that Discord lets people write, with Nitro */
#define BLANKS " \t\r\n"
#define EDITOR_INPUT_MAX 4000 /* code points of a pre-filled input */
/* Editors are limited like commands (job.c). */
#define VIEW_RATE_MS 60000

_Static_assert(COMMAND_PATH_MAX == LIMIT_PATH, "what is taken can be sent");

/* ---- replies ---- */

void
reply_set(struct reply *reply, char *body, const char *outcome)
{
	free(reply->body);
	reply->status = 200;
	reply->body = body;
	reply->outcome = outcome;
	reply->said = CHAT_SAID;
}

void
reply_status(struct reply *reply, int status, const char *outcome)
{
	reply_set(reply, xprintf("{\"error\":\"%s\"}", outcome), outcome);
	reply->status = status;
}

/* A text in which commands can be clicked; heap. */
static char *
add_links(struct context *c, const struct buf *text)
{
	struct buf message = BUF_INIT(4 * MESSAGE_MAX);
	struct command_ids ids = { { 0 } };
	struct err err = { 0 };

	/* without them a command is only named */
	if (c->db != NULL)
		(void)command_ids_load(c->db, c->in->application_id, &ids,
		    &err);
	command_add_text(&message, &ids, buf_str(text));
	return buf_steal(&message, NULL);
}

/* As route_refuse(), with more text behind it. */
static bool
refuse_with(struct context *c, enum text_id text, const char *argument,
    const struct buf *more)
{
	auto_buf struct buf said = BUF_INIT(MESSAGE_MAX);
	auto_free char *message = NULL;

	text_add(&said, text, argument);
	buf_adds(&said, buf_str(more));
	message = add_links(c, &said);
	reply_set(c->reply, answer_message(message, false), text_outcome(text));
	c->reply->said = CHAT_REFUSED;
	return false;
}

bool
route_refuse(struct context *c, enum text_id text, const char *argument)
{
	const struct buf nothing = BUF_INIT(0);

	return refuse_with(c, text, argument, &nothing);
}

static bool
refuse_with_number(struct context *c, enum text_id text, int64_t number)
{
	auto_free char *digits = xprintf("%" PRId64, number);

	return route_refuse(c, text, digits);
}

bool
route_fault(struct context *c, const char *outcome)
{
	(void)refuse_with_number(c, TEXT_OUR_FAULT, c->in->id);
	c->reply->outcome = outcome;
	c->reply->said = CHAT_FAULT;
	return false;
}

void
route_lost(struct context *c, const struct err *err)
{
	c->reply->err = *err;
	c->reply->job_id = 0;
	c->reply->hold_ms = 0;
	(void)route_fault(c, "database");
}

bool
route_text(struct context *c, const struct interaction_value *value, size_t max,
    const char **slot)
{
	if (strlen(value->text) != value->len)
		return route_refuse(c, TEXT_NUL, value->name);
	if (value->len > max)
		return route_refuse(c, TEXT_TOO_LONG, value->name);
	*slot = value->len > 0 ? value->text : NULL;
	return true;
}

bool
route_sandbox(struct context *c)
{
	struct sandbox *s = &c->sandbox;
	int found = sandbox_find(c->db, c->in->user_id, s, &c->reply->err);

	if (found < 0)
		return route_fault(c, "database");
	if (found == 1)
		return route_refuse(c, TEXT_NO_SANDBOX, "");
	if (s->state == SANDBOX_REMOVING)
		return route_refuse(c, TEXT_REMOVING, "");
	return sandbox_is_usable(s) ||
	    refuse_with_number(c, TEXT_EXPIRED, s->expires_at);
}

/* ---- views and jobs ---- */

/* A number that a rule sets, or the default. */
static int64_t
ruled(int64_t own, int64_t usual)
{
	return own > 0 ? own : usual;
}

/* Store a view of the invoker's.  False: the reply says that it failed. */
static bool
insert_view(struct context *c, struct view *view)
{
	int64_t rate = ruled(c->rules.of[RULE_USER].rate, c->config->user_rate);
	int64_t recent = view_count(c->db, c->in->user_id,
	    clock_wall_ms() - VIEW_RATE_MS, rate, &c->reply->err);

	if (recent >= rate)
		return route_refuse(c, TEXT_TOO_MANY, "");
	view->user_id = c->in->user_id;
	if (recent < 0 || view_insert(c->db, view, &c->reply->err) != 0)
		return route_fault(c, "database");
	c->reply->pledged = true;
	return true;
}

/* The job is queued: set the response for the case that no answer comes in
 * time. */
static void
reply_first(struct context *c, const char *outcome)
{
	const char *json = c->job.answer == ANSWER_DEFERRED_UPDATE ?
	    ANSWER_JSON_UPDATE :
	    c->job.share ? ANSWER_JSON_PUBLIC :
			   ANSWER_JSON_PRIVATE;

	reply_set(c->reply,
	    c->job.answer == ANSWER_EDITOR ?
		answer_editor_later(c->action, c->view.id) :
		xstrdup(json),
	    outcome);
	c->reply->said = CHAT_DEFERRED;
	c->reply->pledged = true;
}

/* The running job may have ended meanwhile. */
static void
refuse_running(struct context *c)
{
	struct job job = { 0 };

	if (job_alone(c->db, c->in->user_id, &job, &c->reply->err) == 0)
		reply_set(c->reply,
		    answer_running(job.id, pending_is_fault(c->pending, &job)),
		    "running");
	else
		(void)route_refuse(c, TEXT_RUNNING, "");
	c->reply->said = CHAT_REFUSED;
}

static enum job_insert_result
insert_job(struct context *c)
{
	struct job *job = &c->job;
	const struct rule *of = c->rules.of;
	const struct job_limits limits = {
		.queue_max = ruled(of[RULE_SERVICE].jobs, c->config->queue_max),
		.user_rate = ruled(of[RULE_USER].rate, c->config->user_rate),
		.until_ms = c->until_ms,
		.user_jobs = of[RULE_USER].jobs,
		.guild_rate = of[RULE_GUILD].rate,
		.guild_jobs = of[RULE_GUILD].jobs,
		.service_rate = of[RULE_SERVICE].rate,
	};

	job->interaction_id = c->in->id;
	job->application_id = c->in->application_id;
	job->user_id = c->in->user_id;
	job->guild_id = c->in->guild_id;
	job->received_ms = c->received_ms;
	job->attachment_limit = c->in->attachment_limit;
	job->may_attach = c->in->may_attach;
	job->token = c->in->token;
	job->locale = c->in->locale;
	return job_insert(c->db, job, &limits, &c->reply->err);
}

void
route_job(struct context *c)
{
	int64_t hold_ms = c->job.answer == ANSWER_EDITOR ?
	    ROUTE_EDITOR_MS :
	    c->config->instant_ms;

	c->job.held_by = hold_ms > 0 ? c->holder : JOB_HELD_NOWHERE;
	switch (insert_job(c)) {
	case JOB_INSERTED:
		reply_first(c, "queued");
		c->reply->job_id = c->job.id;
		if (c->job.held_by != JOB_HELD_NOWHERE)
			c->reply->hold_ms = hold_ms;
		break;
	case JOB_REPEATED: /* Discord has sent it twice */
		reply_first(c, "repeated");
		break;
	case JOB_RUNNING:
		refuse_running(c);
		break;
	case JOB_TOO_MANY:
		(void)route_refuse(c, TEXT_TOO_MANY, "");
		break;
	case JOB_GUILD_TOO_MANY:
		(void)route_refuse(c, TEXT_GUILD_TOO_MANY, "");
		break;
	case JOB_QUEUE_FULL:
		(void)route_refuse(c, TEXT_QUEUE_FULL, "");
		break;
	case JOB_LATE:
		reply_status(c->reply, 504, "late");
		break;
	case JOB_INSERT_FAILED:
		(void)route_fault(c, "database");
		break;
	}
}

/* ---- the files of a message, or an upload ---- */

/* Add one more line to the links and names of the job's files. */
static bool
add_script(struct context *c, const struct interaction_attachment *a,
    int64_t most)
{
	if (strlen(a->url) > URL_MAX || strlen(a->name) > LIMIT_NAME ||
	    strchr(a->url, '\n') != NULL || strchr(a->name, '\n') != NULL)
		return route_refuse(c, TEXT_TOO_LONG, "attachment");
	/* before a worker fetches it */
	if (a->size > script_most(script_of(a->name)) ||
	    c->job.attachment_size + a->size > most)
		return route_refuse(c, TEXT_SCRIPT_TOO_LARGE, a->name);
	if (c->links.len > 0) {
		buf_addc(&c->links, '\n');
		buf_addc(&c->names, '\n');
	}
	buf_adds(&c->links, a->url);
	buf_adds(&c->names, a->name);
	c->job.attachment_size += a->size;
	return true;
}

static bool
has_no_text(const struct interaction_message *message)
{
	return message->text[strspn(message->text, BLANKS)] == '\0';
}

/* Choose the files that are Python by their names.  If there is none, choose
 * texts, or else files of unknown names: a worker searches them for code. */
static bool
choose_scripts(const struct interaction *in, bool wanted[], int64_t *most)
{
	enum script best = SCRIPT_BINARY;
	bool found = false;

	*most = SCRIPT_ALL_MAX;
	for (size_t i = 0; i < in->attachment_count; i++) {
		enum script script = script_of(in->attachments[i].name);

		if (script < best)
			best = script;
		if (script_all_most(script) > *most)
			*most = script_all_most(script);
	}
	for (size_t i = 0; i < in->attachment_count; i++) {
		enum script script = script_of(in->attachments[i].name);

		/* beside a text, a file that is too large may be no code */
		wanted[i] = script < SCRIPT_TEXT ||
		    (script == best && script < SCRIPT_BINARY &&
			(in->attachments[i].size <= script_most(script) ||
			    has_no_text(&in->message)));
		found = found || wanted[i];
	}
	return found;
}

static bool
read_scripts(struct context *c)
{
	bool wanted[INTERACTION_ATTACHMENTS_MAX] = { false };
	int64_t most;
	int count = 0;

	if (!choose_scripts(c->in, wanted, &most))
		return true;
	for (size_t i = 0; i < c->in->attachment_count; i++) {
		if (!wanted[i])
			continue;
		if (++count > SCRIPT_COUNT_MAX)
			return route_refuse(c, TEXT_TOO_MANY_SCRIPTS, "");
		if (!add_script(c, &c->in->attachments[i], most))
			return false;
	}
	c->job.attachment_url = c->links.data;
	c->job.attachment_name = c->names.data;
	return true;
}

/* ---- messages ---- */

static bool
read_message(struct context *c)
{
	const struct interaction_message *m = &c->in->message;

	buf_init(&c->links, SCRIPT_COUNT_MAX * (URL_MAX + 1));
	buf_init(&c->names, SCRIPT_COUNT_MAX * (LIMIT_NAME + 1));
	if (!m->found)
		return route_refuse(c, TEXT_MESSAGE_GONE, "");
	if (strlen(m->text) != m->len)
		return route_refuse(c, TEXT_NUL, "message");
	if (text_codepoints(m->text, m->len) > MESSAGE_POINTS)
		return route_refuse(c, TEXT_MESSAGE_LONG, "");
	if (!read_scripts(c))
		return false;
	c->job.has_text = !has_no_text(m);
	if (!c->job.has_text && c->job.attachment_url == NULL &&
	    m->view_id == 0)
		return route_refuse(c,
		    c->in->attachment_count > 0 ? TEXT_MESSAGE_NO_SCRIPT :
			m->shows		? TEXT_MESSAGE_EMBED :
						  TEXT_MESSAGE_EMPTY,
		    "");
	c->job.text = m->text;
	/* the view has the code, and decides whether this person may have it */
	c->job.view_id = m->view_id;
	return true;
}

/* A worker finds the code and opens the editor.  If that takes too long, a
 * button opens it, with the code that has been found by then. */
static bool
read_message_to_edit(struct context *c)
{
	if (!read_message(c))
		return false;
	c->job.answer = ANSWER_EDITOR;
	c->action = ACTION_MESSAGE_OPEN;
	c->view.kind = JOB_MESSAGE_EDIT;
	c->view.page = c->in->message.view_id;
	if (!insert_view(c, &c->view))
		return false;
	c->job.view_id = c->view.id;
	return true;
}

/* ---- commands with checks or answers of their own ---- */

/* Each is called before a command's job is committed.  False: the reply is
 * made. */

/* Without code and file the first answer is an editor. */
static bool
before_py(struct context *c)
{
	struct view view = {
		.kind = JOB_PY,
		.share = c->job.share,
		.timeit = c->job.timeit,
		.keep = c->job.keep,
	};
	const char *input = c->job.input;
	int sources = c->job.has_text + (c->job.path != NULL) +
	    (c->job.attachment_url != NULL);

	if (sources > 1)
		return route_refuse(c, TEXT_CODE_AND_FILE, "");
	if (c->job.attachment_url != NULL &&
	    c->job.attachment_size >
		script_most(script_of(c->job.attachment_name)))
		return route_refuse(c, TEXT_SCRIPT_TOO_LARGE,
		    c->job.attachment_name);
	if (sources == 1)
		return true;
	if (input != NULL &&
	    text_codepoints(input, strlen(input)) > EDITOR_INPUT_MAX)
		return route_refuse(c, TEXT_TOO_LONG, "stdin");
	if (c->job.version != NULL)
		memcpy(view.version, c->job.version,
		    strlen(c->job.version) + 1);
	if (insert_view(c, &view))
		reply_set(c->reply, answer_editor(view.id, input), "editor");
	return false;
}

/* Without content a worker opens the editor with the file's content, which only
 * a cell may read.  If that takes too long, a button tries again. */
static bool
before_write(struct context *c)
{
	if (c->job.has_text)
		return true;
	c->job.kind = c->view.kind = JOB_WRITE_EDIT;
	c->job.answer = ANSWER_EDITOR;
	c->action = ACTION_WRITE_OPEN;
	memcpy(c->view.path, c->job.path, strlen(c->job.path) + 1);
	return insert_view(c, &c->view);
}

/* Ask first.  The question is about this sandbox and no later one.  Without a
 * sandbox it is about the stored code of this person. */
static bool
before_delete(struct context *c)
{
	struct view view = { .kind = JOB_DELETE };
	int found = sandbox_find(c->db, c->in->user_id, &c->sandbox,
	    &c->reply->err);
	const struct sandbox *s = &c->sandbox;
	bool exists = found == 0 && sandbox_is_usable(s);
	int64_t kept = view_count(c->db, c->in->user_id, -1, 1, &c->reply->err);

	if (found < 0 || kept < 0)
		return route_fault(c, "database");
	if (!exists && kept == 0) {
		(void)route_sandbox(c);
		return false;
	}
	if (exists)
		memcpy(view.path, s->id, sizeof(s->id));
	if (insert_view(c, &view))
		reply_set(c->reply,
		    answer_delete_question(exists ? TEXT_DELETE_QUESTION :
						    TEXT_FORGET_QUESTION,
			view.id),
		    "question");
	return false;
}

/* It needs no job, so it is never busy. */
static bool
before_help(struct context *c)
{
	auto_buf struct buf text = BUF_INIT(MESSAGE_MAX);
	auto_free char *message = NULL;

	help_add(&text);
	message = add_links(c, &text);
	reply_set(c->reply, answer_examples(message, HELP_EXAMPLES), "help");
	return false;
}

/* It needs no job either: a job would wait for what it reports. */
static bool
before_health(struct context *c)
{
	reply_set(c->reply,
	    pending_health(c->pending,
		c->received_ms - interaction_created_ms(c->in->id)),
	    "health");
	return false;
}

static bool (*const before[JOB_UNKNOWN])(struct context *c) = {
	[JOB_PY] = before_py,
	[JOB_HELP] = before_help,
	[JOB_HEALTH] = before_health,
	[JOB_MESSAGE_RUN] = read_message,
	[JOB_MESSAGE_EDIT] = read_message_to_edit,
	[JOB_WRITE] = before_write,
	[JOB_DELETE] = before_delete,
};

/* ---- finding ---- */

/* Find a command of a message's menu by the name that people see. */
static enum job_kind
find_menu(const char *name)
{
	int kind = 0;

	while (kind < JOB_UNKNOWN &&
	    (commands[kind].place != COMMAND_MENU ||
		strcmp(commands[kind].description, name) != 0))
		kind++;
	return (enum job_kind)kind;
}

/* JOB_UNKNOWN: there is no such command.  A command beside /il is also accepted
 * under it. */
static enum job_kind
find_kind(const struct interaction *in)
{
	bool under = strcmp(in->name, "il") == 0;
	enum job_kind kind = job_kind_find(under ? in->sub : in->name);
	enum command_place place = commands[kind].place;

	if (in->command_type == MESSAGE_COMMAND)
		return find_menu(in->name);
	if (in->command_type != SLASH_COMMAND || kind == JOB_UNKNOWN ||
	    place == COMMAND_NOWHERE || place == COMMAND_MENU)
		return JOB_UNKNOWN;
	if (!under && (place == COMMAND_UNDER_IL || *in->sub != '\0'))
		return JOB_UNKNOWN;
	return kind;
}

static const struct command_option *
find_option(const struct command *command,
    const struct interaction_value *value)
{
	for (int i = 0; i < COMMAND_OPTIONS_MAX; i++) {
		const struct command_option *option = &command->options[i];

		if (option->name != NULL && option->type == value->type &&
		    strcmp(option->name, value->name) == 0)
			return option;
	}
	return NULL;
}

/* ---- from options to a job ---- */

/* Each returns true, or false and the reply says what is wrong. */

static bool
read_attachment(struct context *c, const struct interaction_value *value)
{
	const struct interaction_attachment *a = interaction_attachment(c->in,
	    value->number);

	if (a == NULL)
		return route_refuse(c, TEXT_NO_ATTACHMENT, "");
	if (strlen(a->url) > URL_MAX || strlen(a->name) > LIMIT_NAME)
		return route_refuse(c, TEXT_TOO_LONG, value->name);
	c->job.attachment_url = a->url;
	c->job.attachment_name = a->name;
	c->job.attachment_size = a->size;
	return true;
}

static bool
read_text_option(struct context *c, const struct command_option *option,
    const struct interaction_value *value, const char **slot)
{
	if (slot == &c->job.path &&
	    (strlen(value->text) != value->len || value->len > option->bytes))
		return route_refuse(c, TEXT_NOT_INSIDE, "");
	if (value->len == 0 && option->required)
		return route_refuse(c, TEXT_MISSING_OPTION, option->name);
	c->job.has_text |= slot == &c->job.text;
	return route_text(c, value, option->bytes, slot);
}

static bool
read_option(struct context *c, const struct command_option *option,
    const struct interaction_value *value)
{
	char *field = (char *)&c->job + option->at;

	switch (option->type) {
	case OPTION_STRING:
		return read_text_option(c, option, value, (const char **)field);
	case OPTION_ATTACHMENT:
		return read_attachment(c, value);
	case OPTION_BOOLEAN:
		*(bool *)field = value->number != 0;
		return true;
	case OPTION_INTEGER:
		*(int64_t *)field = value->number;
		break;
	}
	return (value->number >= 1 && value->number <= PAGE_MAX) ||
	    route_refuse(c, TEXT_BAD_NUMBER, value->name);
}

static bool
refuse_option(struct context *c, const struct command *command,
    const char *name)
{
	auto_buf struct buf near = BUF_INIT(MESSAGE_MAX);

	help_add_near_option(&near, command, name);
	return refuse_with(c, TEXT_UNKNOWN_OPTION, name, &near);
}

static void
refuse_command(struct context *c)
{
	const struct interaction *in = c->in;
	auto_buf struct buf near = BUF_INIT(MESSAGE_MAX);

	help_add_near_command(&near, *in->sub != '\0' ? in->sub : in->name);
	(void)refuse_with(c, TEXT_UNKNOWN_COMMAND, "", &near);
}

static bool
read_options(struct context *c, const struct command *command)
{
	for (size_t i = 0; i < c->in->value_count; i++) {
		const struct interaction_value *value = &c->in->values[i];
		const struct command_option *option = find_option(command,
		    value);

		if (option == NULL)
			return refuse_option(c, command, value->name);
		if (!read_option(c, option, value))
			return false;
	}
	for (int i = 0; i < COMMAND_OPTIONS_MAX; i++) {
		const struct command_option *option = &command->options[i];

		if (option->required &&
		    interaction_value(c->in, option->name) == NULL)
			return route_refuse(c, TEXT_MISSING_OPTION,
			    option->name);
	}
	return true;
}

static void
route_command(struct context *c)
{
	enum job_kind kind = find_kind(c->in);

	if (kind == JOB_UNKNOWN) {
		refuse_command(c);
		return;
	}
	c->job.kind = kind;
	c->job.answer = ANSWER_DEFERRED;
	if (read_options(c, &commands[kind]) &&
	    (commands[kind].needs != COMMAND_NEEDS_OWNER || route_sandbox(c)) &&
	    (before[kind] == NULL || before[kind](c)))
		route_job(c);
}

/* The option that is being typed; NULL: we have none of that name. */
static const struct command_option *
find_typed(const struct interaction *in)
{
	enum job_kind kind = find_kind(in);

	return kind == JOB_UNKNOWN || in->focused == NULL ?
	    NULL :
	    find_option(&commands[kind], in->focused);
}

/* ---- suggestions, which Discord asks for at each key ---- */

/* After any failure nothing is suggested: the person goes on typing. */
static void
suggest_names(struct context *c, const struct command_option *option)
{
	const struct interaction_value *value = c->in->focused;
	char *choices;

	reply_set(c->reply, xstrdup(ANSWER_JSON_NO_CHOICES), "no-choices");
	if (option == NULL || option->suggest == NULL ||
	    value->len > option->bytes || strlen(value->text) != value->len ||
	    c->db == NULL ||
	    sandbox_find(c->db, c->in->user_id, &c->sandbox, &c->reply->err) !=
		0 ||
	    !sandbox_is_usable(&c->sandbox))
		return;
	choices = answer_choices(c->db, c->sandbox.id,
	    option->at == offsetof(struct job, path) ? c->sandbox.cwd : "",
	    option->suggest, value->text, &c->reply->err);
	if (choices != NULL)
		reply_set(c->reply, choices, "choices");
}

/* ---- rules of the operator ---- */

/* The reply reports the first rule that blocks; the service comes first. */
static const enum text_id refusals[RULE_SUBJECTS] = {
	[RULE_SERVICE] = TEXT_PAUSED,
	[RULE_GUILD] = TEXT_GUILD_BLOCKED,
	[RULE_USER] = TEXT_BLOCKED,
};

/* Do the rules let this person in?  c->rules is filled.  Their limits hold in
 * route_job(). */
static bool
admit(struct context *c)
{
	auto_buf struct buf reason = BUF_INIT(2 * RULE_TEXT_SIZE);
	int i = RULE_SERVICE;

	if (rules_find(c->db, c->in->user_id, c->in->guild_id, &c->rules,
		&c->reply->err) != 0)
		return route_fault(c, "database");
	while (i < RULE_SUBJECTS && !c->rules.of[i].blocked)
		i++;
	if (i == RULE_SUBJECTS)
		return true;
	if (c->rules.of[i].reason[0] != '\0')
		rule_add_text(&reason, c->rules.of[i].reason);
	return refuse_with(c, refusals[i], "", &reason);
}

/* The operator's message, if there is one, below what the reply says. */
static void
add_banner(struct context *c)
{
	const char *banner = c->rules.of[RULE_SERVICE].banner;
	auto_buf struct buf words = BUF_INIT(2 * RULE_TEXT_SIZE);

	if (banner[0] == '\0' || c->reply->body == NULL)
		return;
	rule_add_text(&words, banner);
	c->reply->body = answer_below(c->reply->body, buf_str(&words));
}

/* ---- an interaction ---- */

int
route_slot(const struct interaction *in)
{
	const struct command_option *option;
	bool needs;

	if (in->type == INTERACTION_AUTOCOMPLETE) {
		option = find_typed(in);
		needs = option != NULL && option->suggest != NULL;
	} else if (in->type == INTERACTION_COMMAND)
		needs = commands[find_kind(in)].needs != COMMAND_NEEDS_NOTHING;
	else
		return route_action_slot(in);
	return needs ? slot_of(in->user_id) : -1;
}

void
route(struct context *c)
{
	job_init(&c->job);
	if (c->in->type == INTERACTION_AUTOCOMPLETE)
		suggest_names(c, find_typed(c->in));
	else if (c->db == NULL && c->in->type == INTERACTION_COMMAND &&
	    find_kind(c->in) == JOB_HEALTH)
		(void)before_health(c);
	else if (c->db == NULL)
		(void)route_fault(c, "no-database");
	else if (admit(c)) {
		if (c->in->type == INTERACTION_COMMAND)
			route_command(c);
		else
			route_action(c);
	}
	add_banner(c);
	buf_release(&c->links);
	buf_release(&c->names);
}
