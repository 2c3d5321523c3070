#include "submit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "answer.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/store/job.h"
#include "../../sandbox/store/sandbox.h"
#include "../../sandbox/store/view.h"

#define MESSAGE_MAX 8000
#define DIGITS 24

void
reply_release(struct reply *reply)
{
	free(reply->body);
	reply->body = NULL;
}

void
reply_set(struct reply *reply, char *body, const char *outcome)
{
	free(reply->body);
	reply->status = 200;
	reply->body = body;
	reply->outcome = outcome;
}

void
submit_refuse(const struct interaction *in, enum text_id text,
    const char *argument, const char *outcome, struct reply *reply)
{
	auto_buf struct buf message = BUF_INIT(MESSAGE_MAX);

	text_add(&message, in->locale, text, argument);
	reply_set(reply, answer_message(buf_str(&message)), outcome);
}

static void
refuse_with_number(const struct interaction *in, enum text_id text,
    int64_t number, const char *outcome, struct reply *reply)
{
	char digits[DIGITS];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, number);
	submit_refuse(in, text, digits, outcome, reply);
}

void
submit_fault(const struct interaction *in, const char *outcome,
    struct reply *reply)
{
	refuse_with_number(in, TEXT_OUR_FAULT, in->id, outcome, reply);
}

void
submit_late(struct reply *reply)
{
	reply_set(reply, xstrdup("{\"error\":\"late\"}"), "late");
	reply->status = 504;
}

bool
submit_sandbox(const struct context *context, const struct interaction *in,
    struct sandbox *sandbox, struct reply *reply)
{
	int found = sandbox_find(context->db, in->user_id, sandbox,
	    &reply->err);
	bool due;

	if (found < 0) {
		submit_fault(in, "database", reply);
		return false;
	}
	if (found == 1) {
		submit_refuse(in, TEXT_NO_SANDBOX, "", "no-sandbox", reply);
		return false;
	}
	if (sandbox->state == SANDBOX_REMOVING) {
		submit_refuse(in, TEXT_REMOVING, "", "removing", reply);
		return false;
	}
	due = !sandbox->pinned &&
	    sandbox->expires_at <= context->received_ms / 1000;
	if (sandbox->state != SANDBOX_ACTIVE || due) {
		refuse_with_number(in, TEXT_EXPIRED, sandbox->expires_at,
		    "expired", reply);
		return false;
	}
	return true;
}

bool
submit_view(const struct context *context, const struct interaction *in,
    struct view *view, struct reply *reply)
{
	view->user_id = in->user_id;
	view->created_ms = context->received_ms;
	if (view_insert(context->db, view, &reply->err) == 0) {
		reply->pledged = true;
		return true;
	}
	submit_fault(in, "database", reply);
	return false;
}

void
submit_copy(char **slot, const char *text)
{
	char *copy = xstrdup(text);

	free(*slot);
	*slot = copy;
}

void
submit_init(struct job *job)
{
	char **const strings[] = { &job->token, &job->locale, &job->path,
		&job->text, &job->input, &job->attachment_url,
		&job->attachment_name };

	job_init(job);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		submit_copy(strings[i], "");
}

static void
job_fill(struct job *job, const struct context *context,
    const struct interaction *in)
{
	job->interaction_id = in->id;
	job->application_id = in->application_id;
	job->user_id = in->user_id;
	job->received_ms = context->received_ms;
	job->attachment_limit = in->attachment_limit;
	job->may_attach = in->may_attach;
	submit_copy(&job->token, in->token);
	submit_copy(&job->locale, in->locale);
}

static void
reply_first(const struct job *job, struct reply *reply)
{
	switch (job->answer) {
	case ANSWER_DEFERRED:
		reply_set(reply, answer_deferral(!job->share), "queued");
		break;
	case ANSWER_DEFERRED_UPDATE:
		reply_set(reply, answer_deferred_update(), "queued");
		break;
	case ANSWER_CALLBACK:
		/* the worker posts the first answer itself */
		reply_set(reply, NULL, "queued");
		reply->status = 202;
		break;
	}
}

void
submit_job(const struct context *context, const struct interaction *in,
    struct job *job, struct reply *reply)
{
	struct job_limits limits = {
		.queue_max = context->config->queue_max,
		.user_rate = context->config->user_rate,
		.until_ms = context->received_ms + SUBMIT_WITHIN_MS,
	};

	job_fill(job, context, in);
	switch (job_insert(context->db, job, &limits, &reply->err)) {
	case JOB_INSERTED:
		reply->job_id = job->id;
		reply->pledged = true;
		reply_first(job, reply);
		break;
	case JOB_REPEATED:
		reply_set(reply, xstrdup("{\"error\":\"repeated\"}"),
		    "repeated");
		reply->status = 409;
		break;
	case JOB_RUNNING:
		submit_refuse(in, TEXT_RUNNING, "", "running", reply);
		break;
	case JOB_TOO_MANY:
		submit_refuse(in, TEXT_TOO_MANY, "", "too-many", reply);
		break;
	case JOB_QUEUE_FULL:
		submit_refuse(in, TEXT_QUEUE_FULL, "", "queue-full", reply);
		break;
	case JOB_LATE:
		submit_late(reply);
		break;
	case JOB_INSERT_FAILED:
		submit_fault(in, "database", reply);
		break;
	}
}
