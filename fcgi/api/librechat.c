/* SPDX-License-Identifier: MIT */
/*
 * POST /librechat/exec: a program of LibreChat's, with files from the store and
 * into it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app.h"
#include "librechat_who.h"
#include "reply.h"
#include "routes.h"
#include "run.h"
#include "../contract/librechat/libre_answer.h"
#include "../pytext/pyutf8.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/utf8.h"

#define PROCESSES 64
#define FILES_MAX 1000
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define PATH_BUF 4096
#define CODE_MODE 0644
#define READ_ONLY_MODE 0444

/* What the model is told of: /mnt/data is another name of the workspace.  What
 * programs keep for themselves is not to come back. */
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

/* An input of the request. */
struct source {
	const struct libre_file *file;
	bool missing; /* the store has it not, or not for who asks */
	bool read_only;
	bool changed; /* by the run, which left another one in its place */
};

/* A run, and what comes back of it. */
struct libre_run {
	struct api_run run;
	const struct libre_exec *exec;
	char session[LIBRE_ID_LEN + 1]; /* of the files that it leaves */
	struct source *sources;		/* one for each file of exec */
	struct cell_input *inputs;
	size_t input_count;
	size_t own; /* the first ones, which are not of the store */
	struct libre_stream out;
	struct libre_stream err;
	struct filestore_new fresh; /* the file that is coming in */
	struct libre_made *made;
	size_t made_count;
};

/* ---- files in ---- */

/* The code, for Python, comes first; then what the store has of the rest.  What
 * it has not any more ends no conversation: the answer says so. */
static void
open_inputs(struct libre_run *x)
{
	const struct libre_exec *exec = x->exec;
	struct filestore_entry entry;
	struct err err;

	x->sources = xcalloc(exec->file_count + 1, sizeof(*x->sources));
	x->inputs = xcalloc(exec->file_count + 1, sizeof(*x->inputs));
	if (exec->lang == LIBRE_PYTHON)
		x->inputs[x->input_count++] = (struct cell_input){
			.path = exec->entry,
			.content = { exec->code, exec->code_len },
			.mode = CODE_MODE
		};
	x->own = x->input_count;
	for (size_t i = 0; i < exec->file_count; i++) {
		struct source *source = &x->sources[i];
		struct cell_input *input = &x->inputs[x->input_count];
		auto_close int fd = -1;

		source->file = &exec->files[i];
		if (source->file->replaced)
			continue;
		fd = librechat_file(x->run.app, &source->file->resource,
		    source->file->session, source->file->id, &entry, &err);
		source->missing = fd < 0 || !api_input_map(input, fd);
		if (fd < 0)
			continue;
		source->read_only = entry.note[LIBRE_ID_LEN] ==
		    LIBRECHAT_READ_ONLY;
		free(entry.name);
		if (source->missing)
			continue;
		input->path = source->file->name;
		input->mode = source->read_only ? READ_ONLY_MODE : 0;
		input->mtime = -1;
		x->input_count++;
	}
}

static void
release(struct libre_run *x)
{
	filestore_abort(&x->fresh);
	for (size_t i = x->own; i < x->input_count; i++) {
		const struct cell_bytes *content = &x->inputs[i].content;

		if (content->len > 0)
			(void)munmap((void *)(uintptr_t)content->data,
			    content->len);
	}
	for (size_t i = 0; i < x->made_count; i++)
		free(x->made[i].name);
	free(x->made);
	free(x->sources);
	free(x->inputs);
	buf_release(&x->out.text);
	buf_release(&x->err.text);
}

/* ---- files out ---- */

/* One more in the list; its name is made UTF-8. */
static struct libre_made *
add_made(struct libre_run *x, const char *path)
{
	auto_buf struct buf name = BUF_INIT(PATH_BUF);
	struct libre_made *made;

	pyutf8_add_whole(&name, path, strlen(path));
	x->made = xrealloc(x->made, (x->made_count + 1) * sizeof(*x->made));
	made = &x->made[x->made_count++];
	*made = (struct libre_made){ .name = buf_steal(&name, NULL) };
	memcpy(made->session, x->session, sizeof(made->session));
	return made;
}

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

static struct libre_made *
last_made(struct libre_run *x)
{
	return &x->made[x->made_count - 1];
}

/* The last file is whole. */
static void
end_file(struct libre_run *x)
{
	struct libre_made *made;
	struct err err;

	if (x->fresh.store == NULL)
		return;
	made = last_made(x);
	memcpy(x->fresh.note, x->session, sizeof(x->session));
	if (filestore_commit(&x->fresh, made->name, &err) == 0)
		libre_id_of_file(made->id, x->fresh.id);
	else
		made->why = api_left_refused(&x->fresh, &err);
}

/* A file begins.  Of one that may not be changed nothing is kept. */
static void
begin_file(struct libre_run *x, const char *path)
{
	struct source *source = find_source(x, path);
	struct libre_made *made;
	struct err err;

	if (source != NULL && source->read_only)
		return;
	made = add_made(x, path);
	if (source != NULL) {
		source->changed = true;
		memcpy(made->from_id, source->file->id, LIBRE_ID_LEN + 1);
		memcpy(made->from_session, source->file->session,
		    LIBRE_ID_LEN + 1);
	}
	if (filestore_begin(&x->run.app->store, &x->fresh, &err) != 0)
		made->why = api_left_refused(&x->fresh, &err);
}

/* ---- what comes from the cell ---- */

static void
take_event(void *arg, const struct cell_event *event)
{
	struct libre_run *x = arg;
	struct err err;

	switch (event->kind) {
	case CELL_OUTPUT:
		libre_stream_add(event->stream == 1 ? &x->out : &x->err,
		    event->data, event->len);
		break;
	case CELL_FILE:
		/* Files come one after the other. */
		end_file(x);
		begin_file(x, event->name);
		break;
	case CELL_BYTES:
		if (x->fresh.store != NULL &&
		    filestore_write(&x->fresh, event->data, event->len, &err) !=
			0)
			last_made(x)->why = api_left_refused(&x->fresh, &err);
		break;
	case CELL_LEFT_OUT:
		end_file(x);
		add_made(x, event->name)->why = api_run_left_out[event->why];
		break;
	case CELL_STARTED:
	case CELL_ENTRY:
	case CELL_RESULT:
	case CELL_QUIET:
		break;
	}
}

/* ---- the answer ---- */

/* Inputs that are as they were, with the ids that they have; and the names of
 * those that are not there: to be freed. */
static const char **
add_inherited(struct libre_run *x)
{
	const char **missing = xcalloc(x->exec->file_count + 1,
	    sizeof(*missing));
	size_t count = 0;

	for (size_t i = 0; i < x->exec->file_count; i++) {
		const struct source *source = &x->sources[i];
		struct libre_made *made;

		if (source->file->replaced || source->changed)
			continue;
		if (source->missing) {
			missing[count++] = source->file->name;
			continue;
		}
		made = add_made(x, source->file->name);
		made->inherited = true;
		memcpy(made->id, source->file->id, LIBRE_ID_LEN + 1);
		memcpy(made->session, source->file->session, LIBRE_ID_LEN + 1);
	}
	return missing;
}

/* The request as a whole did not fit into the cell. */
static void
answer_error(struct libre_run *x, const struct cell_result *cell)
{
	log_warn("the cell says: %s", cell->error_text);
	if (cell->error == ERROR_NO_SPACE)
		reply_librechat(x->run.req, 413, NULL,
		    "The files do not fit into the work folder",
		    cell->error_path);
	else if (cell->error == ERROR_TOO_LARGE)
		reply_librechat(x->run.req, 413, NULL, "The code is too long",
		    NULL);
	else if (cell->error_path[0] != '\0')
		reply_librechat(x->run.req, 400, NULL,
		    "A file cannot be written", cell->error_path);
	else
		reply_failed(x->run.req, NULL);
}

static void
answer_result(struct libre_run *x)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);
	auto_free const char **missing = add_inherited(x);
	const struct libre_outcome outcome = {
		.session = x->session,
		.out = &x->out,
		.err = &x->err,
		.cell = &x->run.result,
		.timeout_ms = x->exec->timeout_ms,
		.wall_ms = x->run.duration_us / 1000,
		.files = x->made,
		.file_count = x->made_count,
		.missing = missing,
	};

	libre_add_outcome(&body, &outcome);
	http_answer(x->run.req, 200, REPLY_JSON, NULL, buf_str(&body),
	    body.len);
}

/* ---- the request ---- */

static void
run_code(struct api_app *app, struct http_request *req,
    const struct libre_exec *exec)
{
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
		.collect_how = COLLECT_BYTES,
		.collect_ms = COLLECT_MS,
	};
	struct libre_run x = { .run = { .app = app,
				   .req = req,
				   .request = &cell,
				   .c = { .event = take_event } },
		.exec = exec,
		.out = { .text = BUF_INIT(LIBRE_OUTPUT_MAX) },
		.err = { .text = BUF_INIT(LIBRE_OUTPUT_MAX) } };

	x.run.c.arg = &x;
	librechat_make_session(x.session);
	open_inputs(&x);
	cell.inputs = x.inputs;
	cell.input_count = x.input_count;
	if (exec->lang == LIBRE_PYTHON) {
		cell.path = exec->entry;
	} else {
		cell.source = exec->code;
		cell.source_len = exec->code_len;
	}
	api_run(&x.run, NULL);
	if (x.run.end == API_RESULT) {
		end_file(&x);
		if (x.run.result.reason == REASON_ERROR)
			answer_error(&x, &x.run.result);
		else
			answer_result(&x);
	}
	api_run_end(&x.run, API_LIBRECHAT);
	release(&x);
}

void
api_librechat_exec(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	struct libre_exec exec;
	int status = 400;

	if (!api_read_body(req, &body))
		return;
	if (!libre_exec_parse(&exec, buf_str(&body), body.len, &status,
		&error)) {
		reply_librechat(req, status, NULL, buf_str(&error), NULL);
		return;
	}
	buf_release(&body);
	run_code(app, req, &exec);
	pyjson_release(&exec.doc);
}
