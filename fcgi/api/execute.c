/* SPDX-License-Identifier: MIT */
/*
 * One run of the code-interpreter's routes: POST /v1/execute and
 * /v1/execute/stream, with files from the store and into it, and a command in a
 * session, /v1/sessions/{session_id}/bash.  Then the sessions themselves, and
 * /v1/files: the store, over HTTP.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/run.h"
#include "api/routes.h"
#include "contract/code_interpreter/execute_message.h"
#include "contract/multipart.h"
#include "server/serve.h"

#include "base/basics.h"

#define OUTPUT_MAX 1000000 /* MAX_OUTPUT_BYTES of the contract */
#define PROCESSES 64
#define FILES_MAX 1000
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define FRAME_BUF (8 * FRAME_CHUNK)
/* A stream, from its head on: its run waits for its reader. */
#define STREAM_MS 180000
#define RESUME_MS 70000 /* another command may run for 60 s */
#define STAGE_MS 30000
#define FILE_MAX (INT64_C(100) << 20) /* MAX_FILE_SIZE_MB of the contract */
#define ANSWER_MAX ((size_t)8 * FILESTORE_NAME_MAX)
#define NO_FILE "File with ID '%s' not found"

/* A run and its output. */
struct execution {
	struct api_run run;
	struct capture out;
	struct capture err;
	struct buf frame;
};

/* ---- output and files ---- */

static void
begin_stream(struct http_request *req)
{
	http_allow_slow_reader(req, STREAM_MS);
	http_begin(req, 200, SSE_TYPE, SSE_HEADERS);
}

/* Send the gathered events; the run ends when its client is gone. */
static void
execute_send_frame(struct execution *x)
{
	http_write(x->run.req, buf_str(&x->frame), x->frame.len);
	buf_reset(&x->frame);
	x->run.c.hang_up = !http_flush(x->run.req);
}

static struct capture *
execute_stream_of(struct execution *x, const struct cell_event *event)
{
	return event->stream == 1 ? &x->out : &x->err;
}

static void
execute_output(struct api_run *run, const struct cell_event *event)
{
	capture_add(execute_stream_of(run->arg, event), event->data,
	    event->len);
}

static void
stream_started(struct api_run *run)
{
	if (run->req->begun)
		return;
	begin_stream(run->req);
	execute_send_frame(run->arg);
}

static void
stream_output(struct api_run *run, const struct cell_event *event)
{
	struct execution *x = run->arg;

	sse_add_output(&x->frame, execute_stream_of(x, event), event->data,
	    event->len);
	if (x->frame.len > 0)
		execute_send_frame(x);
}

/* ---- the answer ---- */

/* An answer without a result; in a stream that has begun, its last event. */
static void
execute_refuse(struct api_run *run, int status, const char *text)
{
	struct execution *x = run->arg;

	if (run->req->begun) {
		sse_add_error(&x->frame, text);
		execute_send_frame(x);
	} else if (status == 500) {
		reply_failed(run->req, NULL);
	} else {
		reply_detail(run->req, status, NULL, "%s", text);
	}
}

static struct execute_result
execute_sum_up(struct execution *x)
{
	return (struct execute_result){
		.out = &x->out,
		.err = &x->err,
		.cell = &x->run.result,
		.duration_ms = x->run.duration_us / 1000,
		.files = x->run.front->keep == RUN_KEEP_NONE ? NULL :
							       &x->run.files,
		.extras = http_says(x->run.req, REPLY_EXTRAS),
	};
}

static void
execute_answer_run(struct api_run *run)
{
	const struct execute_result result = execute_sum_up(run->arg);
	auto_buf struct buf body = BUF_INIT(EXECUTE_ANSWER_MAX);
	auto_buf struct buf headers = BUF_INIT(256);

	execute_answer(&body, &result);
	api_run_add_left_out(&headers, run);
	reply_json(run->req, 200, buf_str(&headers), &body);
}

static void
stream_answer(struct api_run *run)
{
	struct execution *x = run->arg;
	const struct execute_result result = execute_sum_up(x);
	auto_buf struct buf body = BUF_INIT(EXECUTE_ANSWER_MAX);

	sse_add_output(&body, &x->out, NULL, 0);
	sse_add_output(&body, &x->err, NULL, 0);
	sse_add_result(&body, &result);
	http_write(run->req, buf_str(&body), body.len);
}

static const struct run_error execute_errors[] = {
	{ ERROR_NO_SPACE, true, 413,
	    "File path '*' does not fit into the workspace." },
	{ 0, true, 422, "File path '*' cannot be written." },
	{ 0, false, 500, "Internal Server Error" },
};

static const struct run_front execute_front = {
	.kind = API_EXECUTE,
	.output = execute_output,
	.keep = RUN_KEEP_STORE,
	.answer = execute_answer_run,
	.errors = execute_errors,
	.refuse = execute_refuse,
};

static const struct run_front stream_front = {
	.kind = API_STREAM,
	.started = stream_started,
	.output = stream_output,
	.keep = RUN_KEEP_STORE,
	.answer = stream_answer,
	.errors = execute_errors,
	.refuse = execute_refuse,
};

/* A command has no files. */
static const struct run_error bash_errors[] = {
	{ 0, false, 500, "Internal Server Error" },
};

static const struct run_front bash_front = {
	.kind = API_BASH,
	.output = execute_output,
	.answer = execute_answer_run,
	.errors = bash_errors,
	.refuse = execute_refuse,
};

/* ---- a request, and its files ---- */

/* Read and parse it.  False: it was answered; otherwise it is to be released.
 */
static bool
read_request(struct execute_request *request, enum execute_route route,
    struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct detail detail;

	if (!api_read_body(req, &body))
		return false;
	if (execute_parse(request, route, http_param(req, "CONTENT_TYPE"),
		buf_str(&body), body.len, &detail))
		return true;
	reply_json(req, detail.status, NULL, &detail.body);
	return false;
}

/* A file that exists cannot be had.  False: there is no such file. */
static bool
refuse_away(struct http_request *req, const struct err *err)
{
	if (err->code == ERR_LIMIT)
		reply_detail(req, 413, NULL,
		    "Files of other nodes are too large together");
	else if (err->code == ERR_UNAVAILABLE)
		reply_later(req, 503, 1,
		    "A file of another node cannot be had just now");
	return err->code == ERR_LIMIT || err->code == ERR_UNAVAILABLE ||
	    err->code == ERR_TIMEOUT; /* the client is gone */
}

/* Open the files of a request, and check their paths.  wrong: NULL, or a fault
 * of a path: 422; static.  False: a file cannot be had, which was answered. */
static bool
execute_open_inputs(struct api_inputs *in, const char **wrong,
    struct api_app *app, struct http_request *req,
    struct execute_request *request)
{
	const struct execute_file *files = request->files.items;
	const bool has_code = request->code.data != NULL;
	struct detail detail;
	struct err err = { .code = ERR_NONE };

	if (has_code)
		(void)api_inputs_add(in, "__main__.py", request->code.data,
		    request->code.len);
	for (size_t i = 0; i < request->files.count; i++) {
		const struct execute_file *file = &files[i];

		if (api_inputs_add_file(in, NULL,
			nodes_get_file(app, req, file->id.data, file->id.len,
			    NULL, &err)) != NULL)
			continue;
		if (!refuse_away(req, &err)) {
			(void)execute_refuse_file(file, &detail);
			reply_json(req, detail.status, NULL, &detail.body);
		}
		return false;
	}
	/* Paths are checked once all files are there: 404 comes first. */
	*wrong = execute_stage(request, has_code ? in->items + 1 : in->items);
	return true;
}

/* ---- the run ---- */

/* The files are found, their paths are checked; then it runs. */
static void
run_code(struct execution *x, struct execute_request *execute,
    struct cell_request *cell)
{
	struct api_inputs inputs = { .items = NULL };
	const char *wrong;

	if (!execute_open_inputs(&inputs, &wrong, x->run.app, x->run.req,
		execute)) {
		api_inputs_release(&inputs);
		return;
	}
	cell->op = OP_RUN;
	cell->path = "__main__.py";
	cell->name = execute->echo ? "<stdin>" : NULL;
	cell->echo = execute->echo;
	cell->inputs = inputs.items;
	cell->input_count = inputs.count;
	cell->input = execute->input.data;
	cell->input_len = execute->input.len;
	cell->collect_files = FILES_MAX;
	cell->collect_bytes = FILE_BYTES;
	cell->collect_total = FILE_BYTES;
	cell->collect_how = COLLECT_BYTES;
	cell->collect_ms = COLLECT_MS;
	if (wrong == NULL) {
		api_run(&x->run, NULL);
		api_run_answer(&x->run);
	} else {
		if (x->run.front == &stream_front)
			begin_stream(x->run.req);
		execute_refuse(&x->run, 422, wrong);
	}
	api_inputs_release(&inputs);
}

/* Resume the session for it. */
static void
execute_run_command(struct execution *x, const struct execute_request *bash,
    struct cell_request *cell)
{
	struct api_app *app = x->run.app;
	struct http_request *req = x->run.req;
	struct lease lease;
	struct err err;

	if (session_resume(app, app->id, http_fd(req), RESUME_MS, &lease,
		&err) != 0) {
		if (err.code != ERR_TIMEOUT)
			reply_detail(req, 404, NULL, "Session '%s' not found",
			    app->id);
		else if (!http_client_gone(req))
			reply_busy(req);
		return;
	}
	cell->op = OP_BASH;
	cell->source = bash->code.data;
	cell->source_len = bash->code.len;
	(void)api_run_in(&x->run, &lease, false);
	lease_park(&lease);
	api_run_answer(&x->run);
}

static void
execute(struct api_app *app, struct http_request *req,
    const struct run_front *front)
{
	const bool bash = front == &bash_front;
	struct cell_request cell = {
		.folder = "/workspace",
		.env = api_environment,
		.output_max = OUTPUT_MAX + 1, /* to tell that it is over */
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
	};
	struct execution x = { .run = { .front = front,
				   .app = app,
				   .req = req,
				   .request = &cell },
		.out = CAPTURE_INIT("stdout", OUTPUT_MAX),
		.err = CAPTURE_INIT("stderr", OUTPUT_MAX),
		.frame = BUF_INIT(FRAME_BUF) };
	struct execute_request request;

	if (!read_request(&request, bash ? EXECUTE_BASH : EXECUTE_CODE, req))
		return;
	cell.wall_ms = request.timeout_ms;
	x.run.arg = &x;
	if (bash)
		execute_run_command(&x, &request, &cell);
	else
		run_code(&x, &request, &cell);
	buf_release(&x.out.text);
	buf_release(&x.err.text);
	buf_release(&x.frame);
	jtree_release(&request.doc);
}

void
api_execute(struct api_app *app, struct http_request *req)
{
	execute(app, req, &execute_front);
}

void
api_execute_stream(struct api_app *app, struct http_request *req)
{
	execute(app, req, &stream_front);
}

void
api_session_bash(struct api_app *app, struct http_request *req)
{
	execute(app, req, &bash_front);
}

/* ---- sessions ---- */

/* Give the cell its files, if any; *bash: it has bash.  False: it was answered.
 */
static bool
execute_stage_files(struct api_app *app, struct http_request *req,
    struct lease *lease, const struct api_inputs *inputs, bool *bash)
{
	const struct cell_request request = {
		.op = OP_STAGE,
		.folder = "/workspace",
		.inputs = inputs->items,
		.input_count = inputs->count,
		.wall_ms = STAGE_MS,
	};
	struct api_run run = { .app = app, .req = req, .request = &request };
	static const struct run_error stage_errors[] = {
		{ ERROR_NO_SPACE, false, 413,
		    "File path '*' cannot be written." },
		{ 0, false, 422, "File path '*' cannot be written." },
	};
	auto_buf struct buf text = BUF_INIT(8192);
	const struct run_error *error;

	(void)api_run_in(&run, lease, false);
	if (run.end != RUN_RESULT) {
		api_answer_lost(&run);
		return false;
	}
	*bash = run.result.status == 0;
	if (run.result.reason == REASON_EXIT)
		return true;
	error = api_run_error(stage_errors, &run.result, &text);
	reply_detail(req, error->status, NULL, "%s", buf_str(&text));
	return false;
}

/* There is no cell for a session: answer when one may be free. */
static void
answer_refusal(struct http_request *req, enum refusal refusal, int64_t next_ms)
{
	int64_t seconds = next_ms > 1000 ? (next_ms + 999) / 1000 : 1;
	char text[80];

	(void)snprintf(text, sizeof(text),
	    "All sessions are in use; one may be free in %" PRId64 " s",
	    seconds);
	if (refusal == REFUSAL_FULL)
		reply_later(req, 503, seconds, text);
	else
		reply_busy(req);
}

/* Lease a cell for the session, and park it. */
static void
execute_create_session(struct api_app *app, struct http_request *req,
    int64_t ttl_ms, const struct api_inputs *inputs)
{
	auto_buf struct buf body = BUF_INIT(1024);
	char id[SESSION_ID_SIZE];
	enum refusal refusal;
	struct lease lease;
	bool bash = true;
	struct err err;

	session_make_id(app, id);
	refusal = session_lease(app, req, id, NULL, ttl_ms, 0, &lease, &err);
	if (refusal != REFUSAL_NONE) {
		log_warn("no cell: %s", err.text);
		if (!http_client_gone(req))
			answer_refusal(req, refusal, lease.next_ms);
		return;
	}
	if (!execute_stage_files(app, req, &lease, inputs, &bash) ||
	    http_client_gone(req)) {
		lease_close(&lease);
		return;
	}
	lease_park(&lease);
	execute_add_session(&body, id, clock_wall_ms() + ttl_ms);
	if (!bash)
		log_warn("the image has no bash: "
			 "commands of sessions are run by its sh");
	reply_text(req, 201, bash ? NULL : "Inline-Shell: sh\r\n",
	    buf_str(&body));
}

void
api_session_create(struct api_app *app, struct http_request *req)
{
	struct execute_request session;
	struct api_inputs inputs = { .items = NULL };
	const char *wrong;

	if (!read_request(&session, EXECUTE_SESSION, req))
		return;
	if (execute_open_inputs(&inputs, &wrong, app, req, &session)) {
		if (wrong == NULL)
			execute_create_session(app, req,
			    session.ttl_seconds * 1000, &inputs);
		else
			reply_detail(req, 422, NULL, "%s", wrong);
	}
	api_inputs_release(&inputs);
	jtree_release(&session.doc);
}

void
api_session_delete(struct api_app *app, struct http_request *req)
{
	if (session_end(app, app->id))
		http_answer(req, 204, NULL, NULL, "", 0);
	else
		reply_detail(req, 404, NULL, "Session '%s' not found", app->id);
}

/* ---- files: upload ---- */

/* An upload as it comes. */
struct incoming {
	struct filestore *store;
	struct upload up;
	struct filestore_new file;
	struct err err;
};

/* The last of several files counts; after a failure no file does. */
static bool
upload_event(void *arg, bool part)
{
	struct incoming *x = arg;
	int result = 0;

	if (part && upload_begin(&x->up)) {
		filestore_abort(&x->file);
		result = filestore_begin(x->store, &x->file, &x->err);
	} else if (!part && upload_count(&x->up))
		result = filestore_write(&x->file, x->up.form.data,
		    x->up.form.data_len, &x->err);
	if (result == 0)
		return true;
	log_warn("upload: %s", x->err.text);
	filestore_abort(&x->file);
	return false;
}

/* The form is complete: store the file under its name. */
static void
answer_upload(struct http_request *req, struct incoming *x)
{
	struct filestore_new *file = &x->file;
	struct upload *up = &x->up;
	struct err *err = &x->err;
	auto_buf struct buf body = BUF_INIT(ANSWER_MAX);
	struct detail detail;

	if (err->code == ERR_NONE && !upload_end(up, &detail)) {
		reply_json(req, detail.status, NULL, &detail.body);
		return;
	}
	if (err->code == ERR_NONE &&
	    filestore_commit(file, buf_str(&up->name), err) != 0)
		log_warn("upload: %s", err->text);
	if (err->code == ERR_LIMIT) {
		reply_detail(req, 507, NULL, "The file store is full");
	} else if (err->code == ERR_QUOTA) {
		reply_detail(req, 507, NULL,
		    "This token's share of the file store is full");
	} else if (err->code == ERR_UNAVAILABLE) {
		reply_later(req, 503, 1,
		    "The file store cannot write just now");
	} else if (err->code != ERR_NONE) {
		reply_failed(req, NULL);
	} else {
		execute_add_file(&body, file->id, buf_str(&up->name), up->size,
		    -1);
		reply_text(req, 201, NULL, buf_str(&body));
	}
}

void
api_upload(struct api_app *app, struct http_request *req)
{
	struct incoming x = { .store = &app->store };
	struct detail detail;

	if (!upload_open(&x.up, http_param(req, "CONTENT_TYPE"), FILE_MAX,
		&detail)) {
		reply_json(req, detail.status, NULL, &detail.body);
		return;
	}
	if (api_read_form(req, &x.up.form, upload_event, &x))
		answer_upload(req, &x);
	filestore_abort(&x.file);
	upload_release(&x.up);
}

/* ---- files: the rest ---- */

/* The list is written as the folder is read: it may be long. */
void
api_list(struct api_app *app, struct http_request *req)
{
	struct filestore_entry entry;
	struct err err;
	auto_dir DIR *folder = filestore_open_folder(&app->store, &err);
	const char *comma = "";

	if (folder == NULL) {
		log_warn("list: %s", err.text);
		reply_failed(req, NULL);
		return;
	}
	http_allow_slow_reader(req, REPLY_READER_MS);
	http_begin(req, 200, REPLY_JSON, NULL);
	http_write(req, "{\"files\":[", 10);
	while (!req->failed && filestore_next(&app->store, folder, &entry)) {
		auto_buf struct buf item = BUF_INIT(ANSWER_MAX);

		if (entry.note[0] != '\0') { /* of another contract */
			free(entry.name);
			continue;
		}
		buf_adds(&item, comma);
		comma = ",";
		execute_add_file(&item, entry.id, entry.name, entry.size,
		    entry.uploaded_ms);
		http_write(req, buf_str(&item), item.len);
		free(entry.name);
	}
	http_write(req, "]}", 2);
}

void
api_download(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf disposition = BUF_INIT(ANSWER_MAX);
	struct filestore_entry entry;
	struct err err;
	auto_close int fd = filestore_get(&app->store, app->id, strlen(app->id),
	    &entry, &err);

	if (fd < 0) {
		reply_detail(req, 404, NULL, NO_FILE, app->id);
		return;
	}
	disposition_add(&disposition, entry.name);
	reply_download(req, "application/octet-stream", buf_str(&disposition),
	    fd, entry.size);
	free(entry.name);
}

void
api_delete(struct api_app *app, struct http_request *req)
{
	struct err err;

	if (filestore_delete(&app->store, app->id, strlen(app->id), &err) == 0)
		http_answer(req, 204, NULL, NULL, "", 0);
	else
		reply_detail(req, 404, NULL, NO_FILE, app->id);
}
