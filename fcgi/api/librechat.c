/* SPDX-License-Identifier: MIT */
/*
 * POST /librechat/exec: a program of LibreChat's, and its end.
 */
#include "app.h"
#include "librechat_run.h"
#include "librechat_who.h"
#include "reply.h"
#include "routes.h"
#include "../server/http.h"

static void
answer_outcome(struct libre_run *x, void *arg)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);

	(void)arg;
	libre_add_outcome(&body, &x->outcome);
	http_answer(x->run.req, 200, REPLY_JSON, NULL, buf_str(&body),
	    body.len);
}

void
api_librechat_exec(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	struct libre_exec exec;
	struct libre_run x = { .run = { .app = app, .req = req },
		.exec = &exec };
	int status = 400;

	if (!api_read_body(req, &body))
		return;
	if (!libre_exec_parse(&exec, buf_str(&body), body.len, &status,
		&error)) {
		reply_librechat(req, status, NULL, buf_str(&error), NULL);
		return;
	}
	buf_release(&body);
	librechat_make_session(app, x.session);
	librechat_session_borrow(&x.own, app, req, exec.hint);
	librechat_run(&x, answer_outcome, NULL);
	pyjson_release(&exec.doc);
}
