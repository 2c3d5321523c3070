/* SPDX-License-Identifier: MIT */
/*
 * POST /librechat/exec/programmatic: a program that calls the client's tools, a
 * run for each round.  Between them nothing of it is here.
 */
#include <string.h>

#include "app.h"
#include "librechat_cancel.h"
#include "librechat_run.h"
#include "librechat_who.h"
#include "reply.h"
#include "routes.h"
#include "../server/http.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/log.h"

_Static_assert(LIBRE_OWNER_LEN == TOKENS_HASH_LEN, "an owner");

static void
answer_failed(struct libre_run *x, const char *error)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);

	librechat_run_forget(x);
	libre_add_failed(&body, &x->outcome, error);
	http_answer(x->run.req, 200, REPLY_JSON, NULL, buf_str(&body),
	    body.len);
}

/* It is over. */
static void
answer_end(struct libre_run *x)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);

	if (libre_has_failed(&x->outcome, &error)) {
		answer_failed(x, buf_str(&error));
		return;
	}
	libre_add_completed(&body, &x->outcome);
	http_answer(x->run.req, 200, REPLY_JSON, NULL, buf_str(&body),
	    body.len);
}

/* It has called tools.  What it has left it will leave once more. */
static void
answer_calls(struct libre_run *x, const struct libre_asked *asked)
{
	auto_buf struct buf calls = BUF_INIT(2 * LIBRE_STATE_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	auto_buf struct buf token = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);

	if (x->program->round > LIBRE_ROUNDS_MAX) {
		x->outcome.note = "The program has called tools in 20 rounds, "
				  "and may not do so in another one";
		answer_failed(x, LIBRE_FAILED);
		return;
	}
	/* Cut off, it may look whole. */
	if (x->calls.overflow)
		buf_reset(&x->calls);
	if (!libre_calls_read(x->program, buf_str(&x->calls), x->calls.len,
		&calls, &error)) {
		if (strcmp(buf_str(&error), LIBRE_FAILED) == 0)
			x->outcome.note = "What it called cannot be read";
		answer_failed(x, buf_str(&error));
		return;
	}
	librechat_run_forget(x);
	if (!libre_program_seal(x->program, asked, &calls, &token)) {
		reply_librechat(x->run.req, 413, NULL, LIBRE_STATE_TOO_LARGE,
		    NULL);
		return;
	}
	libre_add_calls(&body, &x->outcome, buf_str(&calls), buf_str(&token));
	http_answer(x->run.req, 200, REPLY_JSON, NULL, buf_str(&body),
	    body.len);
}

static void
answer_round(struct libre_run *x, void *arg)
{
	struct libre_asked *asked = arg;

	if (!x->has_calls) {
		answer_end(x);
		return;
	}
	asked->now_ms = clock_wall_ms();
	answer_calls(x, asked);
}

void
api_librechat_program(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	char session[LIBRE_ID_LEN + 1];
	struct libre_program program;
	struct libre_asked asked = {
		.key = librechat_seal(app),
		.owner = app->owner,
		.now_ms = clock_wall_ms(),
		.session = session,
	};
	struct libre_run x = { .run = { .app = app, .req = req },
		.exec = &program.exec,
		.program = &program };
	struct librechat_call call = LIBRECHAT_CALL_INIT;
	int status = 400;

	if (!api_read_body(req, &body))
		return;
	librechat_make_session(app, session);
	if (!libre_program_parse(&program, buf_str(&body), body.len, &asked,
		&status, &error)) {
		reply_librechat(req, status, NULL, buf_str(&error), NULL);
		return;
	}
	buf_release(&body);
	x.own.connection = -1; /* each round begins as the first one did */
	/* What it leaves is of this node, whichever had its first round. */
	memcpy(x.session,
	    strncmp(program.session, app->tag, strlen(app->tag)) == 0 ?
		program.session :
		session,
	    sizeof(x.session));
	x.run.end = API_GONE;
	if (librechat_call_open(&call, app, req)) {
		x.run.stop_fd = call.cancelled_fd;
		librechat_run(&x, answer_round, &asked);
	}
	librechat_call_close(&call);
	/* A client that cancels closes its connection; a proxy may not. */
	if (x.run.end == API_GONE && !http_client_gone(req))
		reply_librechat(req, 409, NULL, "The execution was cancelled",
		    NULL);
	libre_program_release(&program);
}
