/* SPDX-License-Identifier: MIT */
#include "discord/submit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "discord/pending.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "store/commands.h"

#define MESSAGE_MAX 8000
/* Editors are limited like commands (job.c). */
#define VIEW_RATE_MS 60000

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

char *
submit_clickable(struct context *c, const struct buf *text)
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

bool
submit_refuse_with(struct context *c, enum text_id text, const char *argument,
    const struct buf *more)
{
	auto_buf struct buf said = BUF_INIT(MESSAGE_MAX);
	auto_free char *message = NULL;

	text_add(&said, text, argument);
	buf_adds(&said, buf_str(more));
	message = submit_clickable(c, &said);
	reply_set(c->reply, answer_message(message), text_outcome(text));
	c->reply->said = CHAT_REFUSED;
	return false;
}

bool
submit_refuse(struct context *c, enum text_id text, const char *argument)
{
	const struct buf nothing = BUF_INIT(0);

	return submit_refuse_with(c, text, argument, &nothing);
}

static bool
refuse_with_number(struct context *c, enum text_id text, int64_t number)
{
	auto_free char *digits = xprintf("%" PRId64, number);

	return submit_refuse(c, text, digits);
}

bool
submit_fault(struct context *c, const char *outcome)
{
	(void)refuse_with_number(c, TEXT_OUR_FAULT, c->in->id);
	c->reply->outcome = outcome;
	c->reply->said = CHAT_FAULT;
	return false;
}

void
submit_lost(struct context *c, const struct err *err)
{
	c->reply->err = *err;
	c->reply->job_id = 0;
	c->reply->hold_ms = 0;
	(void)submit_fault(c, "database");
}

bool
submit_text(struct context *c, const struct interaction_value *value,
    size_t max, const char **slot)
{
	if (strlen(value->text) != value->len)
		return submit_refuse(c, TEXT_NUL, value->name);
	if (value->len > max)
		return submit_refuse(c, TEXT_TOO_LONG, value->name);
	*slot = value->len > 0 ? value->text : NULL;
	return true;
}

bool
submit_sandbox(struct context *c)
{
	struct sandbox *s = &c->sandbox;
	int found = sandbox_find(c->db, c->in->user_id, s, &c->reply->err);

	if (found < 0)
		return submit_fault(c, "database");
	if (found == 1)
		return submit_refuse(c, TEXT_NO_SANDBOX, "");
	if (s->state == SANDBOX_REMOVING)
		return submit_refuse(c, TEXT_REMOVING, "");
	if (!sandbox_is_usable(s))
		return refuse_with_number(c, TEXT_EXPIRED, s->expires_at);
	return true;
}

/* Commands that this person may send in 60 s. */
static int64_t
user_rate(const struct context *c)
{
	int64_t own = c->rules.of[RULE_USER].rate;

	return own > 0 ? own : c->config->user_rate;
}

static struct job_limits
limits_of(const struct context *c)
{
	const struct rule *of = c->rules.of;

	return (struct job_limits){
		.queue_max = of[RULE_SERVICE].jobs > 0 ? of[RULE_SERVICE].jobs :
							 c->config->queue_max,
		.user_rate = user_rate(c),
		.until_ms = c->until_ms,
		.user_jobs = of[RULE_USER].jobs,
		.guild_rate = of[RULE_GUILD].rate,
		.guild_jobs = of[RULE_GUILD].jobs,
		.service_rate = of[RULE_SERVICE].rate,
	};
}

bool
submit_view(struct context *c, struct view *view)
{
	int64_t rate = user_rate(c);
	int64_t recent = view_count(c->db, c->in->user_id,
	    clock_wall_ms() - VIEW_RATE_MS, rate, &c->reply->err);

	if (recent >= rate)
		return submit_refuse(c, TEXT_TOO_MANY, "");
	view->user_id = c->in->user_id;
	if (recent < 0 || view_insert(c->db, view, &c->reply->err) != 0)
		return submit_fault(c, "database");
	c->reply->pledged = true;
	return true;
}

/* The job is queued: set the response for the case that no answer comes in
 * time. */
static void
reply_first(struct context *c, const char *outcome)
{
	char *json = NULL;

	switch (c->job.answer) {
	case ANSWER_DEFERRED:
		json = xstrdup(c->job.share ? ANSWER_JSON_PUBLIC :
					      ANSWER_JSON_PRIVATE);
		break;
	case ANSWER_DEFERRED_UPDATE:
		json = xstrdup(ANSWER_JSON_UPDATE);
		break;
	case ANSWER_EDITOR:
		json = answer_editor_later(c->action, c->view.id);
		break;
	}
	reply_set(c->reply, json, outcome);
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
		(void)submit_refuse(c, TEXT_RUNNING, "");
	c->reply->said = CHAT_REFUSED;
}

void
submit_job(struct context *c)
{
	struct job *job = &c->job;
	const struct job_limits limits = limits_of(c);
	int64_t hold_ms;

	job->interaction_id = c->in->id;
	job->application_id = c->in->application_id;
	job->user_id = c->in->user_id;
	job->guild_id = c->in->guild_id;
	job->received_ms = c->received_ms;
	job->attachment_limit = c->in->attachment_limit;
	job->may_attach = c->in->may_attach;
	job->token = c->in->token;
	job->locale = c->in->locale;
	hold_ms = job->answer == ANSWER_EDITOR ? SUBMIT_EDITOR_MS :
						 c->config->instant_ms;
	job->held_by = hold_ms > 0 ? c->holder : JOB_HELD_NOWHERE;
	switch (job_insert(c->db, job, &limits, &c->reply->err)) {
	case JOB_INSERTED:
		reply_first(c, "queued");
		c->reply->job_id = job->id;
		if (job->held_by != JOB_HELD_NOWHERE)
			c->reply->hold_ms = hold_ms;
		break;
	case JOB_REPEATED: /* Discord has sent it twice */
		reply_first(c, "repeated");
		break;
	case JOB_RUNNING:
		refuse_running(c);
		break;
	case JOB_TOO_MANY:
		(void)submit_refuse(c, TEXT_TOO_MANY, "");
		break;
	case JOB_GUILD_TOO_MANY:
		(void)submit_refuse(c, TEXT_GUILD_TOO_MANY, "");
		break;
	case JOB_QUEUE_FULL:
		(void)submit_refuse(c, TEXT_QUEUE_FULL, "");
		break;
	case JOB_LATE:
		reply_status(c->reply, 504, "late");
		break;
	case JOB_INSERT_FAILED:
		(void)submit_fault(c, "database");
		break;
	}
}
