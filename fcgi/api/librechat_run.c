/* SPDX-License-Identifier: MIT */
/*
 * POST /librechat/exec, and /librechat/exec/programmatic: a program that calls
 * the client's tools, a run for each round.  No state is kept between rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "api/app.h"
#include "api/librechat_who.h"
#include "api/gate.h"
#include "api/routes.h"
#include "api/run.h"
#include "contract/librechat/libre_answer.h"
#include "contract/librechat/libre_program.h"
#include "contract/run_files.h"
#include "contract/json.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"

#define PROCESSES 64
#define FILES_MAX 1000
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define READ_ONLY_MODE 0444

/*
 * A program of LibreChat's in a cell of its own, with files from the store and
 * into it.
 */

#define LIBRE_PLACE_MAX 64

/* An input of the request. */
struct source {
	const struct libre_file *file;
	bool missing; /* not in the store, or not for this sender */
	bool read_only;
	bool changed; /* by the run, which left another one in its place */
	bool gone;    /* by the run, which left none */
};

/* A run, and what comes back of it. */
struct libre_run {
	/* set by the caller; all else is zero */
	struct api_run run; /* app, req */
	const struct libre_exec *exec;
	/* The program that calls tools; NULL: the run is none. */
	const struct libre_program *program;
	struct libre_asked *asked; /* of that program */
	/* Answer with the outcome. */
	void (*answer)(struct libre_run *x);
	char session[LIBRE_ID_LEN + 1]; /* of the files that it leaves */
	struct session_named own;	/* the conversation's cell, if any */
	/* set by the run */
	struct source *sources; /* one for each file of exec */
	struct api_inputs inputs;
	struct libre_stream out;
	struct libre_stream err;
	struct source *source; /* that the incoming file was; NULL: it is new */
	struct buf calls;      /* the program's calls, unchecked */
	bool has_calls;	       /* it has left a file of them, */
	bool taking_calls;     /* the incoming one */
	const char **missing;  /* names; NULL at the end, as of the next */
	const char **deleted;
	struct libre_outcome outcome;
	char helper[LIBRE_PLACE_MAX]; /* paths of the files put beside it, */
	char state[LIBRE_PLACE_MAX];
	char left[LIBRE_PLACE_MAX]; /* and of the file of its calls */
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
	const struct libre_exec *exec = x->exec;
	struct filestore_entry entry;
	struct err err;

	x->sources = xcalloc(exec->file_count + 1, sizeof(*x->sources));
	if (exec->lang == LIBRE_PYTHON)
		(void)api_inputs_add(&x->inputs, exec->entry, exec->code,
		    exec->code_len);
	if (x->program != NULL) {
		(void)api_inputs_add(&x->inputs, x->helper, libre_helper,
		    libre_helper_len);
		(void)api_inputs_add(&x->inputs, x->state,
		    buf_str(&x->program->text), x->program->text.len);
	}
	for (size_t i = 0; i < exec->file_count; i++) {
		struct source *source = &x->sources[i];
		struct cell_input *input;
		int fd;

		source->file = &exec->files[i];
		if (source->file->replaced)
			continue;
		fd = librechat_file(x->run.app, x->run.req,
		    &source->file->resource, source->file->session,
		    source->file->id, &entry, &err);
		if (fd >= 0) {
			source->read_only = entry.note[LIBRE_ID_LEN] ==
			    LIBRECHAT_READ_ONLY;
			free(entry.name);
		}
		input = api_inputs_add_file(&x->inputs, source->file->name, fd);
		source->missing = input == NULL;
		if (source->missing)
			continue;
		input->mode = source->read_only ? READ_ONLY_MODE : 0;
		input->mtime = -1;
	}
}

static void
librechat_run_release(struct libre_run *x)
{
	free(x->missing);
	free(x->deleted);
	free(x->sources);
	buf_release(&x->calls);
	api_inputs_release(&x->inputs);
	buf_release(&x->out.text);
	buf_release(&x->err.text);
}

/* ---- files out ---- */

/* The input that has this name; NULL: it is a new file. */
static struct source *
find_source(struct libre_run *x, const char *path)
{
	for (size_t i = 0; i < x->exec->file_count; i++) {
		struct source *source = &x->sources[i];

		if (!source->file->replaced && !source->missing &&
		    strcmp(source->file->name, path) == 0)
			return source;
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

/* A file that may not be changed is not stored. */
static bool
librechat_file_begun(struct api_run *run, const struct cell_event *event)
{
	struct libre_run *x = run->arg;
	const char *path = event->name;

	x->source = find_source(x, path);
	x->taking_calls = x->program != NULL && strcmp(path, x->left) == 0;
	x->has_calls = x->has_calls || x->taking_calls;
	if (librechat_is_ours(x, path) ||
	    (x->source != NULL && x->source->read_only))
		return false;
	if (x->source != NULL)
		x->source->changed = true;
	return true;
}

static void
librechat_whole(struct api_run *run)
{
	const struct libre_run *x = run->arg;

	if (x->source != NULL)
		run->file->was = x->source->file;
}

/* The run has removed an input.  A read-only one is unchanged for the next run.
 */
static void
note_gone(struct libre_run *x, const char *path)
{
	struct source *source = find_source(x, path);

	if (source != NULL && !source->read_only)
		source->gone = true;
}

static void
librechat_output(struct api_run *run, const struct cell_event *event)
{
	struct libre_run *x = run->arg;

	libre_stream_add(event->stream == 1 ? &x->out : &x->err, event->data,
	    event->len);
}

static void
librechat_bytes(struct api_run *run, const struct cell_event *event)
{
	struct libre_run *x = run->arg;

	if (x->taking_calls)
		buf_add(&x->calls, event->data, event->len);
}

static bool
librechat_left_out(struct api_run *run, const struct cell_event *event)
{
	struct libre_run *x = run->arg;

	if (event->why == LEFT_OUT_GONE) {
		note_gone(x, event->name);
		return false;
	}
	/* The calls are there, but cannot be read. */
	if (x->program != NULL && strcmp(event->name, x->left) == 0)
		x->has_calls = true;
	return !librechat_is_ours(x, event->name);
}

/* ---- the answer ---- */

/* Add the unchanged inputs with their ids, then the names of the missing inputs
 * and of those that the run has removed. */
static void
add_inherited(struct libre_run *x)
{
	const size_t most = x->exec->file_count + 1;
	size_t missing = 0;
	size_t deleted = 0;

	x->missing = xcalloc(most, sizeof(*x->missing));
	x->deleted = xcalloc(most, sizeof(*x->deleted));

	for (size_t i = 0; i < x->exec->file_count; i++) {
		const struct source *source = &x->sources[i];
		struct run_file *made;

		if (source->file->replaced || source->changed)
			continue;
		if (source->missing) {
			x->missing[missing++] = source->file->name;
			continue;
		}
		if (source->gone) {
			x->deleted[deleted++] = source->file->name;
			continue;
		}
		made = api_run_add_file(&x->run, source->file->name, 0, NULL);
		made->unchanged = true;
		made->was = source->file;
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

static void
librechat_answer(struct api_run *run)
{
	struct libre_run *x = run->arg;

	add_inherited(x);
	x->outcome = (struct libre_outcome){
		.session = x->session,
		.out = &x->out,
		.err = &x->err,
		.cell = &x->run.result,
		.timeout_ms = x->exec->timeout_ms,
		.wall_ms = x->run.duration_us / 1000,
		.files = &x->run.files,
		.missing = x->missing,
		.deleted = x->deleted,
		.runtime = x->own.used ? x->own.id + strlen(SESSION_PREFIX) :
					 NULL,
		.runtime_new = x->own.fresh,
	};
	x->answer(x);
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

/* ---- the run ---- */

/* The paths of the files that belong to a program that calls tools. */
static void
name_own(struct libre_run *x)
{
	const char *place = x->exec->place;

	(void)snprintf(x->helper, sizeof(x->helper), "%s/%s", place,
	    LIBRE_HELPER_FILE);
	(void)snprintf(x->state, sizeof(x->state), "%s/%s", place,
	    LIBRE_STATE_FILE);
	(void)snprintf(x->left, sizeof(x->left), "%s/%s", place,
	    LIBRE_CALLS_FILE);
}

/* Set the program: the code itself, or the helper that runs it. */
static void
set_code(struct libre_run *x, struct cell_request *cell)
{
	const struct libre_exec *exec = x->exec;

	cell->inputs = x->inputs.items;
	cell->input_count = x->inputs.count;
	if (exec->lang == LIBRE_BASH) {
		cell->source = exec->code;
		cell->source_len = exec->code_len;
	} else if (x->program == NULL) {
		cell->path = exec->entry;
	} else {
		x->words[0] = exec->entry;
		cell->args = x->words;
		cell->path = x->helper;
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
	if (good && x->exec->lang == LIBRE_PYTHON)
		(void)api_remove_in(&x->run, &x->own.cell, x->exec->entry);
	lease_park(&x->own.cell);
}

/* Run, answer, count and release it. */
static void
librechat_run(struct libre_run *x)
{
	const struct libre_exec *exec = x->exec;
	struct cell_request cell = {
		.op = exec->lang == LIBRE_PYTHON ? OP_RUN : OP_BASH,
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
	buf_init(&x->out.text, LIBRE_OUTPUT_MAX);
	buf_init(&x->err.text, LIBRE_OUTPUT_MAX);
	buf_init(&x->calls, LIBRE_CALLS_BYTES);
	name_own(x);
	open_inputs(x);
	set_code(x, &cell);
	/* A conversation keeps its files from run to run, but no process. */
	cell.end_all = x->own.cell.cell_fd >= 0;
	if (cell.end_all)
		run_in_own(x);
	else
		api_run(&x->run, NULL);
	api_run_answer(&x->run);
	librechat_run_release(x);
}

/* ---- POST /librechat/exec ---- */

static void
answer_outcome(struct libre_run *x)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);

	libre_add_outcome(&body, &x->outcome);
	reply_json(x->run.req, 200, NULL, &body);
}

void
api_librechat_exec(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	struct libre_exec exec;
	struct libre_run x = { .run = { .app = app, .req = req },
		.exec = &exec,
		.answer = answer_outcome };
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
	session_resume_named(&x.own, app, req, exec.hint);
	librechat_run(&x);
	jtree_release(&exec.doc);
}

/* ---- a program ---- */

_Static_assert(LIBRE_OWNER_LEN == TOKENS_HASH_LEN, "an owner");

static void
answer_failed(struct libre_run *x, const char *error)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);

	librechat_run_forget(x);
	libre_add_failed(&body, &x->outcome, error);
	reply_json(x->run.req, 200, NULL, &body);
}

/* It is over. */
static void
answer_program_end(struct libre_run *x)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);

	if (libre_has_failed(&x->outcome, &error)) {
		answer_failed(x, buf_str(&error));
		return;
	}
	libre_add_completed(&body, &x->outcome);
	reply_json(x->run.req, 200, NULL, &body);
}

/* The program has called tools.  The next round leaves its files once more. */
static void
answer_calls(struct libre_run *x)
{
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	auto_buf struct buf token = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);
	json_auto_t *calls = NULL;

	if (x->program->round > LIBRE_ROUNDS_MAX) {
		x->outcome.note = "The program has called tools in 20 rounds, "
				  "and may not do so in another one";
		answer_failed(x, LIBRE_FAILED);
		return;
	}
	/* Cut off, it may look whole. */
	if (x->calls.overflow)
		buf_reset(&x->calls);
	calls = libre_calls_read(x->program, buf_str(&x->calls), x->calls.len,
	    &error);
	if (calls == NULL) {
		if (strcmp(buf_str(&error), LIBRE_FAILED) == 0)
			x->outcome.note = "What it called cannot be read";
		answer_failed(x, buf_str(&error));
		return;
	}
	librechat_run_forget(x);
	if (!libre_program_seal(x->program, x->asked, calls, &token)) {
		reply_librechat(x->run.req, 413, NULL, LIBRE_STATE_TOO_LARGE,
		    NULL);
		return;
	}
	libre_add_calls(&body, &x->outcome, calls, buf_str(&token));
	reply_json(x->run.req, 200, NULL, &body);
}

static void
answer_round(struct libre_run *x)
{
	if (!x->has_calls) {
		answer_program_end(x);
		return;
	}
	x->asked->now_ms = clock_wall_ms();
	answer_calls(x);
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
		.program = &program,
		.asked = &asked,
		.answer = answer_round };
	const char *id = http_param(req, "HTTP_X_LIBRECHAT_CODE_REQUEST_ID");
	bool cancelled = false;
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
	if (!jtree_parse(&doc, buf_str(&body), body.len, &fault)) {
		reply_librechat(req, 400, NULL, "The body is not valid JSON",
		    NULL);
		return;
	}
	id = jtree_text(json_object_get(doc.root, "request_id"));
	if (!librechat_is_call_id(id))
		reply_librechat(req, 400, NULL,
		    "Missing required field: request_id", NULL);
	else
		reply_text(req, 200, NULL,
		    librechat_cancel(app, id) ?
			"{\"cancelled\":true,\"running\":true}" :
			"{\"cancelled\":true,\"running\":false}");
	jtree_release(&doc);
}
