/* SPDX-License-Identifier: MIT */
/*
 * /v1/sessions: a cell for a while.  Its commands are in execute.c.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "app.h"
#include "reply.h"
#include "routes.h"
#include "run.h"
#include "session_cell.h"
#include "session_holder.h"
#include "../contract/code_interpreter/execute_answer.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

#define STAGE_MS 30000

/* Give the cell its files, if any, and hear whether it has bash.  False: it was
 * answered. */
static bool
stage(struct api_app *app, struct http_request *req, const struct lease *lease,
    const struct api_inputs *inputs, bool *bash)
{
	const struct cell_request request = {
		.op = OP_STAGE,
		.folder = "/workspace",
		.inputs = inputs->items,
		.input_count = inputs->count,
		.wall_ms = STAGE_MS,
	};
	struct api_run run = { .app = app, .req = req, .request = &request };

	api_run_in(&run, lease->cell_fd, lease->broker_fd);
	if (run.end != API_RESULT) {
		api_answer_lost(&run);
		return false;
	}
	*bash = run.result.status == 0;
	if (run.result.reason == REASON_EXIT)
		return true;
	log_warn("the cell says: %s", run.result.error_text);
	reply_detail(req, run.result.error == ERROR_NO_SPACE ? 413 : 422, NULL,
	    "File path '%s' cannot be written.", run.result.error_path);
	return false;
}

/* There is none. */
static void
answer_refusal(struct http_request *req, enum refusal refusal, int64_t next_ms)
{
	int64_t seconds = (next_ms + 999) / 1000;
	char headers[64];

	if (seconds < 1)
		seconds = 1;
	if (refusal != REFUSAL_FULL) {
		reply_busy(req);
		return;
	}
	(void)snprintf(headers, sizeof(headers), "Retry-After: %" PRId64 "\r\n",
	    seconds);
	reply_detail(req, 503, headers,
	    "All sessions are in use; one may be free in %" PRId64 " s",
	    seconds);
}

/* Lease a cell for it, and have a holder keep that. */
static void
create(struct api_app *app, struct http_request *req, int64_t ttl_ms,
    const struct api_inputs *inputs)
{
	auto_buf struct buf body = BUF_INIT(1024);
	char id[SESSION_ID_SIZE];
	enum refusal refusal;
	struct lease lease;
	bool bash = true;
	int64_t next_ms;
	struct err err;
	int result;

	/* The cell, then its files, then its holder. */
	refusal = session_cell_lease(app, req, NULL, ttl_ms, &lease, &next_ms,
	    &err);
	if (refusal != REFUSAL_NONE) {
		log_warn("no cell: %s", err.text);
		if (!http_client_gone(req))
			answer_refusal(req, refusal, next_ms);
		return;
	}
	if (!stage(app, req, &lease, inputs, &bash) || http_client_gone(req)) {
		lease_close(&lease);
		return;
	}
	result = session_holder_start(app, &lease,
	    clock_monotonic_ms() + ttl_ms, id, &err);
	lease_close(&lease); /* the holder has its own descriptors */
	if (result == 0) {
		execute_add_session(&body, id, clock_wall_ms() + ttl_ms);
		if (!bash)
			log_warn("the image has no bash: "
				 "commands of sessions are run by its sh");
		reply_text(req, 201, bash ? NULL : "Inline-Shell: sh\r\n",
		    buf_str(&body));
	} else {
		log_err("session: %s", err.text);
		reply_failed(req, NULL);
	}
}

void
api_session_create(struct api_app *app, struct http_request *req)
{
	struct execute_request session;
	struct api_inputs inputs;

	if (!api_read_request(&session, EXECUTE_SESSION, req))
		return;
	if (api_inputs_open(&inputs, app, req, &session)) {
		if (inputs.wrong == NULL)
			create(app, req, session.ttl_seconds * 1000, &inputs);
		else
			reply_detail(req, 422, NULL, "%s", inputs.wrong);
		api_inputs_close(&inputs);
	}
	pyjson_release(&session.doc);
}

void
api_session_delete(struct api_app *app, struct http_request *req)
{
	if (session_holder_end(app, app->id))
		http_answer(req, 204, NULL, NULL, "", 0);
	else
		reply_detail(req, 404, NULL, "Session '%s' not found", app->id);
}
