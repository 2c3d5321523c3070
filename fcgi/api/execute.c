/* SPDX-License-Identifier: MIT */
/*
 * One run of the code-interpreter's routes: POST /v1/execute and
 * /v1/execute/stream, with files from the store and into it, and a command in a
 * session, /v1/sessions/{session_id}/bash.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "reply.h"
#include "routes.h"
#include "run.h"
#include "session_holder.h"
#include "../contract/code_interpreter/execute_answer.h"
#include "../contract/path_text.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

#define OUTPUT_MAX 1000000 /* MAX_OUTPUT_BYTES of the contract */
#define PROCESSES 64
#define FILES_MAX 1000
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define PATH_BYTES 4096
#define FRAME_BUF (8 * FRAME_CHUNK)
/* A stream, from its head on: its run waits for its reader. */
#define STREAM_MS 180000
#define BORROW_MS 70000 /* another command may run for 60 s */

/* What comes back of one run. */
struct execution {
	struct api_run run;
	enum api_kind kind;
	struct capture out;
	struct capture err;
	struct buf frame;
	struct filestore_new fresh; /* the file that is coming in */
	struct run_files files;	    /* that are told of in the answer */
	struct run_file *file;	    /* the same as fresh, in there */
};

/* ---- files into the store ---- */

/* The last file is whole.  Of one that the store does not take the answer says
 * so. */
static void
end_file(struct execution *x)
{
	if (x->fresh.store != NULL)
		x->file->id = api_left_keep(&x->fresh, x->file->path,
		    &x->file->why);
}

static struct run_file *
add_file(struct execution *x, const struct cell_event *event, const char *why)
{
	auto_buf struct buf path = BUF_INIT(PATH_BYTES);

	path_text_write_new(&path, event->name, x->files.items, x->files.count,
	    sizeof(*x->files.items));
	return run_files_add(&x->files, buf_str(&path), event->size, why);
}

/* ---- what comes from the cell ---- */

static void
begin_stream(struct http_request *req)
{
	http_allow_slow_reader(req, STREAM_MS);
	http_begin(req, 200, SSE_TYPE, SSE_HEADERS);
}

/* Out with the events that are gathered; the run ends where nobody reads. */
static void
send_frame(struct execution *x)
{
	http_write(x->run.req, buf_str(&x->frame), x->frame.len);
	buf_reset(&x->frame);
	x->run.c.hang_up = !http_flush(x->run.req);
}

static void
take_event(void *arg, const struct cell_event *event)
{
	struct execution *x = arg;
	struct capture *stream = event->stream == 1 ? &x->out : &x->err;
	struct err err;

	switch (event->kind) {
	case CELL_STARTED:
		if (x->kind != API_STREAM || x->run.req->begun)
			break;
		begin_stream(x->run.req);
		send_frame(x);
		break;
	case CELL_OUTPUT:
		if (x->kind != API_STREAM) {
			capture_add(stream, event->data, event->len);
			break;
		}
		sse_add_output(&x->frame, stream, event->data, event->len);
		if (x->frame.len > 0)
			send_frame(x);
		break;
	case CELL_FILE:
		/* Files come one after the other. */
		end_file(x);
		x->file = add_file(x, event, NULL);
		if (filestore_begin(&x->run.app->store, &x->fresh, &err) != 0)
			x->file->why = api_left_refused(&x->fresh, &err);
		break;
	case CELL_BYTES:
		if (x->fresh.store != NULL &&
		    filestore_write(&x->fresh, event->data, event->len, &err) !=
			0)
			x->file->why = api_left_refused(&x->fresh, &err);
		break;
	case CELL_LEFT_OUT:
		end_file(x);
		(void)add_file(x, event, api_run_left_out[event->why]);
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
	if (x->run.req->begun) {
		sse_add_error(&x->frame, text);
		send_frame(x);
	} else if (status == 500) {
		reply_failed(x->run.req, NULL);
	} else {
		reply_detail(x->run.req, status, NULL, "%s", text);
	}
}

/* What was printed is written as it was taken: it is not copied into the
 * answer. */
static void
write_result(struct execution *x, const struct execute_result *result)
{
	auto_buf struct buf body = BUF_INIT(EXECUTE_ANSWER_MAX);
	struct http_request *req = x->run.req;
	struct capture *streams[] = { &x->out, &x->err };
	auto_buf struct buf headers = BUF_INIT(256);
	size_t written = 0;
	size_t left_out = 0;
	size_t len;

	for (size_t i = 0; i < 2; i++)
		capture_end(streams[i]);
	len = execute_answer(&body, result);
	for (size_t i = 0; i < x->files.count; i++)
		left_out += x->files.items[i].id == NULL ? 1 : 0;
	buf_addf(&headers, "Content-Length: %zu\r\n", len);
	reply_add_left_out(&headers, left_out, x->run.result.cut);
	http_begin(req, 200, REPLY_JSON, buf_str(&headers));
	for (size_t i = 0; i < 2; i++) {
		const struct capture *stream = streams[i];

		http_write(req, body.data + written, stream->at - written);
		http_write(req, buf_str(&stream->text), stream->text.len);
		written = stream->at;
	}
	http_write(req, body.data + written, body.len - written);
}

/* The run has come to its end, whichever. */
static void
answer_result(struct execution *x)
{
	struct execute_result result = {
		.out = &x->out,
		.err = &x->err,
		.cell = &x->run.result,
		.duration_ms = x->run.duration_us / 1000,
		.files = x->kind == API_BASH ? NULL : &x->files,
		.extras = reply_wants_extras(x->run.req),
	};
	auto_buf struct buf body = BUF_INIT(EXECUTE_ANSWER_MAX);

	if (x->kind == API_STREAM) {
		sse_add_rest(&body, &x->out);
		sse_add_rest(&body, &x->err);
		sse_add_result(&body, &result);
		http_write(x->run.req, buf_str(&body), body.len);
	} else {
		write_result(x, &result);
	}
}

/* The request as a whole did not fit into the cell. */
static void
answer_error(struct execution *x, const struct cell_result *cell)
{
	bool full = cell->error == ERROR_NO_SPACE;
	char text[1200];

	log_warn("the cell says: %s", cell->error_text);
	if (cell->error_path[0] == '\0' || x->kind == API_BASH) {
		answer_trouble(x, 500, "Internal Server Error");
		return;
	}
	(void)snprintf(text, sizeof(text), "File path '%s' %s.",
	    cell->error_path,
	    full ? "does not fit into the workspace" : "cannot be written");
	answer_trouble(x, full ? 413 : 422, text);
}

static void
answer_run(struct execution *x)
{
	char text[64];

	if (x->run.end == API_LOST && x->run.req->begun) {
		(void)snprintf(text, sizeof(text),
		    "Internal Server Error, reference %s", x->run.reference);
		answer_trouble(x, 500, text);
	}
	if (x->run.end == API_RESULT) {
		end_file(x);
		if (x->run.result.reason == REASON_ERROR)
			answer_error(x, &x->run.result);
		else
			answer_result(x);
	}
	api_run_end(&x->run, x->kind);
}

/* ---- the request ---- */

/* The files are found, their paths are checked; then it runs. */
static void
run_code(struct execution *x, struct execute_request *execute,
    struct cell_request *cell)
{
	struct api_inputs inputs;

	if (!api_inputs_open(&inputs, x->run.app, x->run.req, execute))
		return;
	cell->op = OP_RUN;
	cell->path = "__main__.py";
	cell->name = execute->echo ? "<stdin>" : NULL;
	cell->echo = execute->echo;
	cell->inputs = inputs.items;
	cell->input_count = inputs.count;
	cell->input = execute->input.text;
	cell->input_len = execute->input.len;
	cell->collect_files = FILES_MAX;
	cell->collect_bytes = FILE_BYTES;
	cell->collect_total = FILE_BYTES;
	cell->collect_how = COLLECT_BYTES;
	cell->collect_ms = COLLECT_MS;
	if (inputs.wrong == NULL) {
		api_run(&x->run, NULL);
		answer_run(x);
	} else {
		if (x->kind == API_STREAM)
			begin_stream(x->run.req);
		answer_trouble(x, 422, inputs.wrong);
	}
	api_inputs_close(&inputs);
}

/* The session's cell is borrowed for it. */
static void
run_command(struct execution *x, const struct execute_request *bash,
    struct cell_request *cell)
{
	struct api_app *app = x->run.app;
	struct http_request *req = x->run.req;
	const struct pollfd gone = { .fd = http_fd(req), .events = POLLRDHUP };
	struct err err;
	int cell_fd;
	int connection = session_holder_borrow(app, app->id, &gone, &cell_fd,
	    BORROW_MS, &err);

	if (connection < 0) {
		if (err.code != ERR_TIMEOUT)
			reply_detail(req, 404, NULL, "Session '%s' not found",
			    app->id);
		else if (!http_client_gone(req))
			reply_busy(req);
		return;
	}
	cell->op = OP_BASH;
	cell->source = bash->code.text;
	cell->source_len = bash->code.len;
	api_run_in(&x->run, cell_fd, connection);
	if (x->run.end == API_RESULT && !x->run.lost)
		session_holder_return(connection);
	else
		(void)close(connection); /* which ends the session */
	answer_run(x);
	(void)close(cell_fd);
}

static void
answer(struct api_app *app, struct http_request *req, enum api_kind kind)
{
	struct cell_request cell = {
		.folder = "/workspace",
		.env = api_environment,
		.output_max = OUTPUT_MAX + 1, /* to tell that it is over */
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
	};
	struct execution x = { .run = { .app = app,
				   .req = req,
				   .request = &cell,
				   .c = { .event = take_event } },
		.kind = kind,
		.out = CAPTURE_INIT("stdout", OUTPUT_MAX),
		.err = CAPTURE_INIT("stderr", OUTPUT_MAX),
		.frame = BUF_INIT(FRAME_BUF) };
	struct execute_request request;

	if (!api_read_request(&request,
		kind == API_BASH ? EXECUTE_BASH : EXECUTE_CODE, req))
		return;
	cell.wall_ms = request.timeout_ms;
	x.run.c.arg = &x;
	if (kind == API_BASH)
		run_command(&x, &request, &cell);
	else
		run_code(&x, &request, &cell);
	filestore_abort(&x.fresh);
	run_files_release(&x.files);
	buf_release(&x.out.text);
	buf_release(&x.err.text);
	buf_release(&x.frame);
	pyjson_release(&request.doc);
}

void
api_execute(struct api_app *app, struct http_request *req)
{
	answer(app, req, API_EXECUTE);
}

void
api_execute_stream(struct api_app *app, struct http_request *req)
{
	answer(app, req, API_STREAM);
}

void
api_session_bash(struct api_app *app, struct http_request *req)
{
	answer(app, req, API_BASH);
}
