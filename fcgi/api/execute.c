/*
 * POST /v1/execute and /v1/execute/stream: one run, with files from the store
 * and into it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "inputs.h"
#include "reply.h"
#include "routes.h"
#include "run.h"
#include "../contract/execute_answer.h"
#include "../contract/execute_request.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

#define OUTPUT_MAX 1000000 /* MAX_OUTPUT_BYTES of the contract */
#define PROCESSES 64
#define FILES_MAX 1000
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define FRAME_BUF (8 * FRAME_CHUNK)
#define NAME_MAX_BYTES 4096
/* A stream, from its head on: its run waits for its reader. */
#define STREAM_MS 180000

/* What comes back of one run. */
struct execution {
	struct api_app *app;
	struct http_request *req;
	bool streams;
	struct capture out;
	struct capture err;
	struct sse_stream sse_out;
	struct sse_stream sse_err;
	struct buf frame;
	struct filestore_new fresh; /* the file that is coming in */
	struct execute_kept *kept;  /* paths and ids are heap */
	size_t kept_count;
};

/* ---- files into the store ---- */

static void
keep(struct execution *x, const char *path, int64_t size, const char *why)
{
	x->kept = xrealloc(x->kept, (x->kept_count + 1) * sizeof(*x->kept));
	x->kept[x->kept_count++] = (struct execute_kept){
		.path = xstrdup(path), .size = size, .why = why
	};
}

static void
leave_fresh(struct execution *x, const struct err *err)
{
	x->kept[x->kept_count - 1].why = err->code == ERR_LIMIT ||
		err->code == ERR_QUOTA ?
	    "the store is full" :
	    "the store failed";
	log_warn("a file was not kept: %s", err->text);
	filestore_abort(&x->fresh);
}

/* The last file is whole. */
static void
end_file(struct execution *x)
{
	auto_buf struct buf name = BUF_INIT(NAME_MAX_BYTES);
	struct pyutf8 decoder = { .count = 0 };
	struct execute_kept *file;
	char id[FILESTORE_ID_LEN + 1];
	const char *slash;
	struct err err;

	if (x->fresh.store == NULL)
		return;
	file = &x->kept[x->kept_count - 1];
	slash = strrchr(file->path, '/');
	slash = slash == NULL ? file->path : slash + 1;
	pyutf8_add(&decoder, &name, slash, strlen(slash));
	pyutf8_end(&decoder, &name);
	memcpy(id, x->fresh.id, sizeof(id));
	if (filestore_commit(&x->fresh, buf_str(&name), &err) == 0)
		file->id = xstrdup(id);
	else
		leave_fresh(x, &err);
}

static void
begin_file(struct execution *x, const struct cell_event *event)
{
	struct err err;

	end_file(x);
	keep(x, event->name, event->size, NULL);
	if (filestore_begin(&x->app->store, &x->fresh, &err) != 0)
		leave_fresh(x, &err);
}

static void
add_to_file(struct execution *x, const struct cell_event *event)
{
	struct err err;

	if (x->fresh.store != NULL &&
	    filestore_write(&x->fresh, event->data, event->len, &err) != 0)
		leave_fresh(x, &err);
}

/* ---- what comes from the cell ---- */

static void
begin_stream(struct execution *x)
{
	http_allow_slow_reader(x->req, STREAM_MS);
	http_begin(x->req, 200, SSE_TYPE, SSE_HEADERS);
}

static void
send_frame(struct execution *x)
{
	http_write(x->req, buf_str(&x->frame), x->frame.len);
	buf_reset(&x->frame);
	(void)http_flush(x->req);
}

static void
take_output(struct execution *x, const struct cell_event *event)
{
	bool out = event->stream == 1;

	if (!x->streams) {
		capture_add(out ? &x->out : &x->err, event->data, event->len);
		return;
	}
	sse_add_output(&x->frame, out ? &x->sse_out : &x->sse_err, event->data,
	    event->len);
	if (x->frame.len > 0)
		send_frame(x);
}

static void
take_event(void *arg, const struct cell_event *event)
{
	struct execution *x = arg;

	switch (event->kind) {
	case CELL_STARTED:
		if (!x->streams || x->req->begun)
			break;
		begin_stream(x);
		(void)http_flush(x->req);
		break;
	case CELL_OUTPUT:
		take_output(x, event);
		break;
	case CELL_FILE:
		begin_file(x, event);
		break;
	case CELL_BYTES:
		add_to_file(x, event);
		break;
	case CELL_LEFT_OUT:
		end_file(x);
		keep(x, event->name, event->size, api_run_left_out[event->why]);
		break;
	case CELL_ENTRY:
	case CELL_RESULT:
	case CELL_QUIET:
		break;
	}
}

/* ---- the answer ---- */

/* An answer that is no result; in a stream that has begun, its last event. */
static void
answer_trouble(struct execution *x, int status, const char *text)
{
	struct detail detail;

	if (x->req->begun) {
		sse_add_error(&x->frame, text);
		send_frame(x);
	} else if (status == 503) {
		reply_busy(x->req);
	} else if (status == 500) {
		reply_failed(x->req);
	} else {
		(void)detail_text(&detail, status, "%s", text);
		reply_refuse(x->req, &detail);
	}
}

static void
answer_result(struct execution *x, const struct api_run *run)
{
	struct execute_result result = {
		.out = &x->out,
		.err = &x->err,
		.cell = &run->result,
		.duration_ms = run->duration_us / 1000,
		.files = x->kept,
		.file_count = x->kept_count,
		.extras = reply_wants_extras(x->req),
	};
	struct execute_kept none;
	struct buf body;

	if (result.files == NULL)
		result.files = &none; /* an empty list, not none */
	buf_init(&body, EXECUTE_ANSWER_MAX);
	if (x->streams) {
		sse_add_rest(&body, &x->sse_out);
		sse_add_rest(&body, &x->sse_err);
		sse_add_result(&body, &result);
		http_write(x->req, buf_str(&body), body.len);
	} else {
		execute_answer(&body, &result);
		http_answer(x->req, 200, REPLY_JSON, NULL, buf_str(&body),
		    body.len);
	}
	buf_release(&body);
}

/* The request as a whole did not fit into the cell. */
static void
answer_error(struct execution *x, const struct cell_result *cell)
{
	char text[1200];

	log_warn("the cell says: %s", cell->error_text);
	if (cell->error_path[0] == '\0') {
		answer_trouble(x, 500, "Internal Server Error");
		return;
	}
	(void)snprintf(text, sizeof(text), "File path '%s' %s.",
	    cell->error_path,
	    cell->error == ERROR_NO_SPACE ? "does not fit into the workspace" :
					    "cannot be written");
	answer_trouble(x, cell->error == ERROR_NO_SPACE ? 413 : 422, text);
}

/* No result: nobody knows what the run did. */
static void
answer_lost(struct execution *x, const struct api_run *run)
{
	char text[64];

	if (!x->req->begun) {
		api_answer_lost(x->req, run);
		return;
	}
	(void)snprintf(text, sizeof(text),
	    "Internal Server Error, reference %s", run->reference);
	answer_trouble(x, 500, text);
}

static void
answer_run(struct execution *x, struct api_run *run)
{
	switch (run->end) {
	case API_GONE:
		return;
	case API_REFUSED:
		answer_trouble(x, 503, "");
		return;
	case API_LOST:
		answer_lost(x, run);
		return;
	case API_RESULT:
		end_file(x);
		if (run->result.reason == REASON_ERROR) {
			answer_error(x, &run->result);
			return;
		}
		break;
	}
	answer_result(x, run);
}

/* ---- the request ---- */

static void
run_code(struct execution *x, const struct execute_request *execute,
    const struct api_inputs *inputs)
{
	struct cell_request request = {
		.op = OP_RUN,
		.path = "__main__.py",
		.name = execute->echo ? "<stdin>" : NULL,
		.folder = "/workspace",
		.env = execute_environment,
		.echo = execute->echo,
		.inputs = inputs->items,
		.input_count = inputs->count,
		.input = execute->input.text,
		.input_len = execute->input.len,
		.wall_ms = execute->timeout_ms,
		.output_max = OUTPUT_MAX + 1, /* to tell that it is over */
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
		.collect_files = FILES_MAX,
		.collect_bytes = FILE_BYTES,
		.collect_total = FILE_BYTES,
		.collect_how = COLLECT_BYTES,
		.collect_ms = COLLECT_MS,
	};
	enum api_kind kind = x->streams ? API_STREAM : API_EXECUTE;
	struct api_run run;

	api_run(&run, x->app, x->req, NULL, &request, take_event, x);
	answer_run(x, &run);
	api_run_count(&run, x->app, kind);
}

static void
execution_release(struct execution *x)
{
	filestore_abort(&x->fresh);
	for (size_t i = 0; i < x->kept_count; i++) {
		free((void *)(uintptr_t)x->kept[i].path);
		free((void *)(uintptr_t)x->kept[i].id);
	}
	free(x->kept);
	capture_release(&x->out);
	capture_release(&x->err);
	buf_release(&x->frame);
}

/* The files are found, their paths are checked; then it runs. */
static void
execute(struct execution *x, struct execute_request *request)
{
	struct api_inputs inputs;
	const char *message;
	struct detail detail;

	if (!api_inputs_open(&inputs, x->app, &request->files, &request->code,
		&detail)) {
		reply_refuse(x->req, &detail);
		return;
	}
	if (execute_stage(&request->files, true, &message)) {
		api_inputs_name(&inputs, &request->files);
		run_code(x, request, &inputs);
	} else {
		if (x->streams)
			begin_stream(x);
		answer_trouble(x, 422, message);
	}
	api_inputs_close(&inputs);
}

static void
answer_execute(struct api_app *app, struct http_request *req, bool streams)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct execution x = { .app = app, .req = req, .streams = streams };
	struct execute_request request;
	struct detail detail;

	if (!reply_read_body(req, &body))
		return;
	if (!execute_parse(&request, EXECUTE_CODE,
		app->eval_terms.timeout_max_ms, http_param(req, "CONTENT_TYPE"),
		buf_str(&body), body.len, &detail)) {
		reply_refuse(req, &detail);
		return;
	}
	buf_release(&body);
	capture_init(&x.out, OUTPUT_MAX);
	capture_init(&x.err, OUTPUT_MAX);
	sse_stream_init(&x.sse_out, "stdout", OUTPUT_MAX);
	sse_stream_init(&x.sse_err, "stderr", OUTPUT_MAX);
	buf_init(&x.frame, FRAME_BUF);
	execute(&x, &request);
	execution_release(&x);
	execute_release(&request);
}

void
api_execute(struct api_app *app, struct http_request *req, const char *id)
{
	(void)id;
	answer_execute(app, req, false);
}

void
api_execute_stream(struct api_app *app, struct http_request *req,
    const char *id)
{
	(void)id;
	answer_execute(app, req, true);
}
