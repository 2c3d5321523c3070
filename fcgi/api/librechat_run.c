/* SPDX-License-Identifier: MIT */
/*
 * POST /librechat/exec, and /librechat/exec/programmatic: a program that calls
 * the client's tools, a run for each round.  No state is kept between rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/app.h"
#include "api/librechat_who.h"
#include "api/gate.h"
#include "api/routes.h"
#include "api/run.h"
#include "contract/librechat/libre_program.h"
#include "server/serve.h"

#include "base/basics.h"

#define PROCESSES 64
#define FILES_MAX 1000
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define READ_ONLY_MODE 0444

/* A program of LibreChat's, with files from the store and into it. */
struct libre_run {
	/* set by the caller; all else is zero */
	struct api_run run; /* app, req */
	struct libre_exec *exec;
	/* The program that calls tools; NULL: the run is none. */
	const struct libre_program *program;
	struct libre_asked *asked;	/* of that program */
	char session[LIBRE_ID_LEN + 1]; /* of the files that it leaves */
	struct session_named own;	/* the conversation's cell, if any */
	/* set by the run */
	struct api_inputs inputs;
	struct libre_file *was; /* the input that the incoming file was; NULL:
				 * it is new */
	struct buf calls;	/* the program's calls, unchecked */
	bool has_calls;		/* it has left a file of them, */
	bool taking_calls;	/* the incoming one */
	struct libre_outcome outcome;
	const char *words[2];
};

/* The model is told of /mnt/data, another name of the workspace.  Caches and
 * settings of programs lie elsewhere, so they do not come back as files. */
static const char *const environment[] = {
	"LANG=C.UTF-8",
	"HOME=/mnt/data",
	"PWD=/mnt/data",
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"PYTHONUNBUFFERED=1",
	"PYTHONDONTWRITEBYTECODE=1",
	"PYTHONIOENCODING=utf-8",
	"MPLBACKEND=agg",
	"MPLCONFIGDIR=/tmp/matplotlib",
	"XDG_CACHE_HOME=/tmp/cache",
	"XDG_CONFIG_HOME=/tmp/config",
	/* A thread for each core of a large host is more than may be. */
	"OMP_NUM_THREADS=4",
	"OPENBLAS_NUM_THREADS=4",
	NULL,
};

/* ---- files in ---- */

/* The code comes first for Python, then the files that the store still has.  A
 * missing file does not end the conversation: the answer names it. */
static void
open_inputs(struct libre_run *x)
{
	const struct libre_program *p = x->program;
	struct libre_exec *exec = x->exec;
	struct filestore_entry entry;

	if (!exec->is_bash)
		(void)api_inputs_add(&x->inputs, exec->entry, exec->code.data,
		    exec->code.len);
	if (p != NULL) {
		(void)api_inputs_add(&x->inputs, p->helper_path, libre_helper,
		    libre_helper_len);
		(void)api_inputs_add(&x->inputs, p->state_path,
		    buf_str(&p->text), p->text.len);
	}
	for (size_t i = 0; i < exec->file_count; i++) {
		struct libre_file *file = &exec->files[i];
		struct cell_input *input;
		int fd;

		if (file->replaced)
			continue;
		librechat_use(x->run.app, &file->resource);
		fd = librechat_file(x->run.app, x->run.req, file->session,
		    file->id, &entry);
		if (fd >= 0) {
			file->read_only = entry.note[LIBRE_ID_LEN] ==
			    LIBRECHAT_READ_ONLY;
			free(entry.name);
		}
		input = api_inputs_add_file(&x->inputs, file->name, fd);
		file->missing = input == NULL;
		if (file->missing)
			continue;
		input->mode = file->read_only ? READ_ONLY_MODE : 0;
		input->mtime = -1;
	}
	/* Files of the run itself are the sender's. */
	librechat_use(x->run.app, &(struct libre_resource){ .kind = "user" });
}

/* ---- files out ---- */

/* The input that has this name; NULL: it is a new file. */
static struct libre_file *
find_input(struct libre_run *x, const char *path)
{
	for (size_t i = 0; i < x->exec->file_count; i++) {
		struct libre_file *file = &x->exec->files[i];

		if (!file->replaced && !file->missing &&
		    strcmp(file->name, path) == 0)
			return file;
	}
	return NULL;
}

/* Is it one of the files that were put beside a program? */
static bool
librechat_is_ours(const struct libre_run *x, const char *path)
{
	size_t len = strlen(x->exec->place);

	return x->program != NULL && strncmp(path, x->exec->place, len) == 0 &&
	    path[len] == '/';
}

/* A file comes, or cannot: is it the one with the program's calls? */
static bool
is_calls(struct libre_run *x, const char *path)
{
	bool found = x->program != NULL &&
	    strcmp(path, x->program->calls_path) == 0;

	x->has_calls = x->has_calls || found;
	return found;
}

/* A file that may not be changed is not stored. */
static bool
librechat_file_begun(struct api_run *run, const struct cell_event *event)
{
	struct libre_run *x = run->arg;

	x->was = find_input(x, event->name);
	x->taking_calls = is_calls(x, event->name);
	if (librechat_is_ours(x, event->name) ||
	    (x->was != NULL && x->was->read_only))
		return false;
	if (x->was != NULL)
		x->was->changed = true;
	return true;
}

static void
librechat_whole(struct api_run *run)
{
	const struct libre_run *x = run->arg;

	run->file->was = x->was;
}

static void
librechat_output(struct api_run *run, const struct cell_event *event)
{
	struct libre_run *x = run->arg;

	libre_stream_add(event->stream == 1 ? &x->outcome.out : &x->outcome.err,
	    event->data, event->len);
}

static void
librechat_bytes(struct api_run *run, const struct cell_event *event)
{
	struct libre_run *x = run->arg;

	if (x->taking_calls)
		buf_add(&x->calls, event->data, event->len);
}

/* Of files that the run has removed only inputs are listed; a read-only one is
 * unchanged for the next run. */
static bool
librechat_left_out(struct api_run *run, const struct cell_event *event)
{
	struct libre_run *x = run->arg;
	struct libre_file *was = find_input(x, event->name);

	if (event->why == LEFT_OUT_GONE) {
		if (was == NULL || was->read_only)
			return false;
		was->changed = true;
	}
	(void)is_calls(x, event->name);
	return !librechat_is_ours(x, event->name);
}

/* ---- the answer ---- */

/* Add the unchanged inputs with their ids, and those that are missing. */
static void
add_inherited(struct libre_run *x)
{
	for (size_t i = 0; i < x->exec->file_count; i++) {
		const struct libre_file *was = &x->exec->files[i];
		struct run_file *file;

		if (was->replaced || was->changed)
			continue;
		if (was->missing) {
			(void)run_files_add(&x->run.files, was->name, 0,
			    LIBRE_MISSING);
			continue;
		}
		file = api_run_add_file(&x->run, was->name, 0, NULL);
		file->unchanged = true;
		file->was = was;
	}
}

/* The cell could not begin.  The file is named unless the code is at fault. */
static void
librechat_refuse(struct api_run *run, int status, const char *text)
{
	if (status == 500)
		reply_failed(run->req, NULL);
	else
		reply_librechat(run->req, status, NULL, text,
		    run->result.error == ERROR_TOO_LARGE ?
			NULL :
			run->result.error_path);
}

static const struct run_error librechat_errors[] = {
	{ ERROR_NO_SPACE, false, 413,
	    "The files do not fit into the work folder" },
	{ ERROR_TOO_LARGE, false, 413, "The code is too long" },
	{ 0, true, 400, "A file cannot be written" },
	{ 0, false, 500, "" },
};

/* Remove the files that the run has left in the store. */
static void
librechat_run_forget(struct libre_run *x)
{
	struct filestore *store = &x->run.app->store;
	struct err err;

	for (size_t i = 0; i < x->run.files.count; i++) {
		const char *id = x->run.files.items[i].id;

		if (id != NULL &&
		    filestore_delete(store, id, strlen(id), &err) != 0)
			log_warn("a file of a run is not wanted: %s", err.text);
	}
}

/* The calls of a program that can go on; NULL: why it cannot. */
static json_t *
read_calls(struct libre_run *x, json_t **why)
{
	struct api_error error;
	json_t *calls;

	if (x->program->round > LIBRE_ROUNDS_MAX) {
		x->outcome.note = "The program has called tools in 20 rounds, "
				  "and may not do so in another one";
		*why = json_string(LIBRE_FAILED);
		return NULL;
	}
	/* Cut off, it may look whole. */
	if (x->calls.overflow)
		buf_reset(&x->calls);
	calls = libre_calls_read(x->program, buf_str(&x->calls), x->calls.len,
	    &error);
	if (calls == NULL && strcmp(error.text, LIBRE_FAILED) == 0)
		x->outcome.note = "What it called cannot be read";
	if (calls == NULL)
		*why = jtext_pack(error.text, strlen(error.text));
	return calls;
}

/* A program that has called tools leaves its files once more in the next round.
 * Of one that has failed nothing is kept. */
static void
answer_program(struct libre_run *x)
{
	auto_buf struct buf token = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	json_t *why = x->has_calls ? NULL : libre_find_error(&x->outcome);
	json_auto_t *calls = x->has_calls ? read_calls(x, &why) : NULL;

	if (x->has_calls || why != NULL)
		librechat_run_forget(x);
	x->asked->now_ms = clock_wall_ms();
	if (calls == NULL)
		reply_value(x->run.req, 200, NULL,
		    libre_pack_end(&x->outcome, why));
	else if (libre_program_seal(x->program, x->asked, calls, &token))
		reply_value(x->run.req, 200, NULL,
		    libre_pack_calls(&x->outcome, calls, buf_str(&token)));
	else
		reply_librechat(x->run.req, 413, NULL, LIBRE_STATE_TOO_LARGE,
		    NULL);
}

static void
librechat_answer(struct api_run *run)
{
	struct libre_run *x = run->arg;

	add_inherited(x);
	x->outcome.wall_ms = run->duration_us / 1000;
	if (x->own.used)
		x->outcome.runtime = x->own.id + strlen(SESSION_PREFIX);
	x->outcome.runtime_new = x->own.fresh;
	if (x->program != NULL)
		answer_program(x);
	else
		reply_value(run->req, 200, NULL,
		    libre_pack_outcome(&x->outcome));
}

static const struct run_front librechat_front = {
	.kind = API_LIBRECHAT,
	.keep = RUN_KEEP_STORE,
	.stores_paths = true,
	.output = librechat_output,
	.file = librechat_file_begun,
	.bytes = librechat_bytes,
	.whole = librechat_whole,
	.left_out = librechat_left_out,
	.answer = librechat_answer,
	.errors = librechat_errors,
	.refuse = librechat_refuse,
};

/* ---- the run ---- */

/* Set the program: the code itself, or the helper that runs it. */
static void
set_code(struct libre_run *x, struct cell_request *cell)
{
	const struct libre_exec *exec = x->exec;

	cell->inputs = x->inputs.items;
	cell->input_count = x->inputs.count;
	if (exec->is_bash) {
		cell->source = exec->code.data;
		cell->source_len = exec->code.len;
	} else if (x->program == NULL) {
		cell->path = exec->entry;
	} else {
		x->words[0] = exec->entry;
		cell->args = x->words;
		cell->path = x->program->helper_path;
	}
}

/* Run in the conversation's cell: a client that hangs up ends the run, but not
 * the cell. */
static void
run_in_own(struct libre_run *x)
{
	bool good = api_run_in(&x->run, &x->own.cell, true);

	if (good && x->run.result.reason == REASON_ERROR) {
		/* Files of earlier runs leave no room for those of this one,
		 * which has not begun.  A fresh cell may have it. */
		x->own.cell.lost = true;
		lease_park(&x->own.cell);
		api_run(&x->run, NULL);
		return;
	}
	x->own.used = true;
	/* The program is not a file of the conversation. */
	if (good && !x->exec->is_bash)
		(void)api_remove_in(&x->run, &x->own.cell, x->exec->entry);
	lease_park(&x->own.cell);
}

/* Run, answer, count and release it. */
static void
librechat_run(struct libre_run *x)
{
	const struct libre_exec *exec = x->exec;
	struct cell_request cell = {
		.op = exec->is_bash ? OP_BASH : OP_RUN,
		.folder = "/workspace",
		.env = environment,
		.args = exec->args,
		.wall_ms = exec->timeout_ms,
		.output_max = LIBRE_OUTPUT_MAX + 1, /* to tell it is over */
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
		.collect_files = FILES_MAX,
		.collect_bytes = FILE_BYTES,
		.collect_total = FILE_BYTES,
		.collect_how = COLLECT_BYTES | COLLECT_GONE,
		.collect_ms = COLLECT_MS,
	};

	x->run.request = &cell;
	x->run.front = &librechat_front;
	x->run.arg = x;
	x->run.note = x->session;
	x->outcome = (struct libre_outcome){ .session = x->session,
		.out = BUF_INIT(LIBRE_OUTPUT_MAX),
		.err = BUF_INIT(LIBRE_OUTPUT_MAX),
		.cell = &x->run.result,
		.timeout_ms = exec->timeout_ms,
		.files = &x->run.files };
	buf_init(&x->calls, LIBRE_CALLS_BYTES);
	open_inputs(x);
	set_code(x, &cell);
	/* A conversation keeps its files from run to run, but no process. */
	cell.end_all = x->own.cell.cell_fd >= 0;
	if (cell.end_all)
		run_in_own(x);
	else
		api_run(&x->run, NULL);
	api_run_answer(&x->run);
	api_inputs_release(&x->inputs);
	buf_release(&x->calls);
	buf_release(&x->outcome.out);
	buf_release(&x->outcome.err);
}

/* ---- POST /librechat/exec ---- */

void
api_librechat_exec(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct libre_exec exec;
	struct libre_run x = { .run = { .app = app, .req = req },
		.exec = &exec };
	struct api_error error;

	if (!api_read_body(req, &body))
		return;
	if (!libre_exec_parse(&exec, buf_str(&body), body.len, &error)) {
		reply_librechat(req, error.status, NULL, error.text, NULL);
		return;
	}
	buf_release(&body);
	librechat_make_session(app, x.session);
	session_resume_named(&x.own, app, req, exec.hint);
	librechat_run(&x);
	jtree_release(&exec.doc);
}

/* ---- a program ---- */

_Static_assert(LIBRE_OWNER_LEN == TOKENS_HASH_LEN, "an owner");

void
api_librechat_program(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
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
		.program = &program,
		.asked = &asked };
	const char *id = http_param(req, "HTTP_X_LIBRECHAT_CODE_REQUEST_ID");
	struct api_error error;
	bool cancelled = false;

	if (!api_read_body(req, &body))
		return;
	librechat_make_session(app, session);
	if (!libre_program_parse(&program, buf_str(&body), body.len, &asked,
		&error)) {
		reply_librechat(req, error.status, NULL, error.text, NULL);
		return;
	}
	buf_release(&body);
	/* Each round begins as the first one did. */
	x.own.cell = (struct lease)LEASE_NONE;
	/* The run's files are of this node, whichever had the first round. */
	memcpy(x.session,
	    strncmp(program.session, app->tag, strlen(app->tag)) == 0 ?
		program.session :
		session,
	    sizeof(x.session));
	if (!librechat_is_call_id(id)) {
		librechat_run(&x);
	} else {
		if (librechat_call_begin(app, id, http_fd(req)))
			librechat_run(&x);
		cancelled = !librechat_call_end(app);
	}
	/* A client that cancels closes its connection; a proxy may not. */
	if (cancelled && !req->begun)
		reply_librechat(req, 409, NULL, "The execution was cancelled",
		    NULL);
	libre_program_release(&program);
}

/* ---- POST /librechat/exec/programmatic/cancel ---- */

void
api_librechat_cancel(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct jtree_error fault;
	struct jtree doc;
	const char *id;

	if (!api_read_body(req, &body))
		return;
	(void)jtree_parse(&doc, buf_str(&body), body.len, &fault);
	id = jtree_text(json_object_get(doc.root, "request_id"));
	if (librechat_is_call_id(id))
		reply_value(req, 200, NULL,
		    json_pack("{s:b,s:b}", "cancelled", 1, "running",
			librechat_cancel(app, id)));
	else
		reply_librechat(req, 400, NULL,
		    "Missing required field: request_id", NULL);
	jtree_release(&doc);
}
