#include "route.h"

#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "submit.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/store/job.h"
#include "../../sandbox/store/sandbox.h"
#include "../../sandbox/store/view.h"

/* A button or an editor that was pressed, with what it refers to.  The view is
 * the invoker's own and of the action's kind. */
struct action_call {
	const struct context *context;
	const struct interaction *in;
	const struct view *view;
	int step;	 /* of the view's page */
	struct job *job; /* initialised; kind, answer and view_id are set */
	struct reply *reply;
};

static void
queue(const struct action_call *p)
{
	struct sandbox sandbox;

	if (commands[p->job->kind].needs < COMMAND_NEEDS_OWNER ||
	    submit_sandbox(p->context, p->in, &sandbox, p->reply))
		submit_job(p->context, p->in, p->job, p->reply);
}

/* The command of the view once more, for what it is about. */
static void
action_again(const struct action_call *p)
{
	int64_t page = p->view->page + p->step;

	p->job->page = page < 1 ? 1 : page;
	submit_copy(&p->job->path, p->view->path);
	queue(p);
}

static void
action_delete_yes(const struct action_call *p)
{
	struct sandbox sandbox;

	if (!submit_sandbox(p->context, p->in, &sandbox, p->reply))
		return;
	if (strcmp(sandbox.id, p->view->path) != 0) {
		submit_refuse(p->in, TEXT_GONE, "", "gone", p->reply);
		return;
	}
	submit_job(p->context, p->in, p->job, p->reply);
}

static void
action_delete_no(const struct action_call *p)
{
	reply_set(p->reply,
	    answer_update(text_get(p->in->locale, TEXT_DELETE_KEPT)), "kept");
}

/* The text of an editor's input; a missing one is empty.  False: refused. */
static bool
take_input(const struct action_call *p, const char *name, size_t max,
    char **slot)
{
	const struct interaction_value *value = interaction_value(p->in, name);

	if (value == NULL)
		return true;
	if (strlen(value->text) != value->len) {
		submit_refuse(p->in, TEXT_NUL, name, "nul", p->reply);
		return false;
	}
	if (value->len > max) {
		submit_refuse(p->in, TEXT_TOO_LONG, name, "too-long", p->reply);
		return false;
	}
	submit_copy(slot, value->text);
	return true;
}

static void
action_py(const struct action_call *p)
{
	struct job *job = p->job;

	job->answer = ANSWER_DEFERRED;
	job->has_text = true;
	job->share = p->view->share != 0;
	if (!take_input(p, "code", COMMAND_CODE_MAX, &job->text) ||
	    !take_input(p, "stdin", COMMAND_CODE_MAX, &job->input))
		return;
	if (job->text[strspn(job->text, " \t\r\n")] == '\0') {
		submit_refuse(p->in, TEXT_NO_CODE, "", "no-code", p->reply);
		return;
	}
	queue(p);
}

static void
action_write(const struct action_call *p)
{
	struct job *job = p->job;

	job->answer = ANSWER_DEFERRED;
	job->has_text = true;
	submit_copy(&job->path, p->view->path);
	if (take_input(p, "content", COMMAND_CONTENT_MAX, &job->text))
		queue(p);
}

static void (*const actions[ACTION_COUNT])(const struct action_call *call) = {
#define ACTION(action, name, type, kind, function, step) \
	[ACTION_##action] = action_##function,
#include "../../sandbox/store/commands.def"
};

/* "<action>:<view id>".  ACTION_COUNT: not one of ours. */
static enum action
find_action(const struct interaction *in, int64_t *view_id)
{
	const char *colon = strchr(in->custom_id, ':');
	size_t len = colon == NULL ? 0 : (size_t)(colon - in->custom_id);
	bool editor = in->type == INTERACTION_MODAL;
	int i = 0;

	if (len == 0 || !text_parse_int(colon + 1, 1, INT64_MAX, view_id))
		return ACTION_COUNT;
	while (i < ACTION_COUNT &&
	    (command_actions[i].is_editor != editor ||
		strlen(command_actions[i].name) != len ||
		memcmp(command_actions[i].name, in->custom_id, len) != 0))
		i++;
	return (enum action)i;
}

/* The view, if it is there, of the right kind and the invoker's own. */
static bool
find_view(const struct context *context, const struct interaction *in,
    enum job_kind kind, int64_t id, struct view *view, struct reply *reply)
{
	int found = view_find(context->db, id, view, &reply->err);

	if (found < 0)
		submit_fault(in, "database", reply);
	else if (found == 1 || view->kind != kind)
		submit_refuse(in, TEXT_GONE, "", "gone", reply);
	else if (view->user_id != in->user_id)
		submit_refuse(in, TEXT_NOT_YOURS, "", "not-yours", reply);
	else
		return true;
	return false;
}

void
route_action(const struct context *context, const struct interaction *in,
    struct reply *reply)
{
	struct view view = { .id = 0 };
	struct job job;
	int64_t view_id = 0;
	enum action action = find_action(in, &view_id);

	if (action == ACTION_COUNT) {
		submit_refuse(in, TEXT_UNKNOWN_BUTTON, "", "unknown-button",
		    reply);
		return;
	}
	if (!find_view(context, in, command_actions[action].kind, view_id,
		&view, reply))
		return;
	submit_init(&job);
	job.kind = view.kind;
	job.answer = ANSWER_DEFERRED_UPDATE;
	job.view_id = view.id;
	actions[action](&(struct action_call){
	    context, in, &view, command_actions[action].step, &job, reply });
	job_release(&job);
}
