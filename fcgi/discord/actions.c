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
	struct job *job; /* initialised; answer and view_id are set */
	struct reply *reply;
};

struct action {
	const char *name;
	enum interaction_type type;
	enum view_kind view;
	void (*run)(const struct action_call *call);
};

static void
queue(const struct action_call *p)
{
	struct sandbox sandbox;

	if (submit_sandbox(p->context, p->in, &sandbox, p->reply))
		submit_job(p->context, p->in, p->job, p->reply);
}

static void
action_look(const struct action_call *p, int64_t step)
{
	int64_t page = p->view->page + step;

	p->job->kind = JOB_LOOK;
	p->job->page = page < 1 ? 1 : page;
	submit_copy(&p->job->path, p->view->path);
	queue(p);
}

static void
action_look_previous(const struct action_call *p)
{
	action_look(p, -1);
}

static void
action_look_next(const struct action_call *p)
{
	action_look(p, 1);
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
	p->job->kind = JOB_DELETE;
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

	job->kind = JOB_PY;
	job->answer = ANSWER_DEFERRED;
	job->has_text = true;
	job->share = p->view->share != 0;
	if (!take_input(p, "code", ROUTE_CODE_MAX, &job->text) ||
	    !take_input(p, "stdin", ROUTE_CODE_MAX, &job->input))
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

	job->kind = JOB_WRITE;
	job->answer = ANSWER_DEFERRED;
	job->has_text = true;
	submit_copy(&job->path, p->view->path);
	if (take_input(p, "content", ROUTE_CONTENT_MAX, &job->text))
		queue(p);
}

static const struct action actions[] = {
	{ "look-prev", INTERACTION_COMPONENT, VIEW_LOOK, action_look_previous },
	{ "look-next", INTERACTION_COMPONENT, VIEW_LOOK, action_look_next },
	{ "delete-yes", INTERACTION_COMPONENT, VIEW_DELETE, action_delete_yes },
	{ "delete-no", INTERACTION_COMPONENT, VIEW_DELETE, action_delete_no },
	{ "py", INTERACTION_MODAL, VIEW_PY, action_py },
	{ "write", INTERACTION_MODAL, VIEW_WRITE, action_write },
};

/* "<action>:<view id>".  NULL: not one of ours. */
static const struct action *
find_action(const struct interaction *in, int64_t *view_id)
{
	const char *colon = strchr(in->custom_id, ':');
	size_t len = colon == NULL ? 0 : (size_t)(colon - in->custom_id);

	if (len == 0 || !text_parse_int(colon + 1, 1, INT64_MAX, view_id))
		return NULL;
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (actions[i].type == in->type &&
		    strlen(actions[i].name) == len &&
		    memcmp(actions[i].name, in->custom_id, len) == 0)
			return &actions[i];
	return NULL;
}

/* The view, if it is there, of the right kind and the invoker's own. */
static bool
find_view(const struct context *context, const struct interaction *in,
    const struct action *action, int64_t id, struct view *view,
    struct reply *reply)
{
	int found = view_find(context->db, id, view, &reply->err);

	if (found < 0)
		submit_fault(in, "database", reply);
	else if (found == 1 || view->kind != action->view)
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
	const struct action *action = find_action(in, &view_id);

	if (action == NULL) {
		submit_refuse(in, TEXT_UNKNOWN_BUTTON, "", "unknown-button",
		    reply);
		return;
	}
	if (!find_view(context, in, action, view_id, &view, reply))
		return;
	submit_init(&job);
	job.answer = ANSWER_DEFERRED_UPDATE;
	job.view_id = view.id;
	action->run(&(struct action_call){ context, in, &view, &job, reply });
	job_release(&job);
}
