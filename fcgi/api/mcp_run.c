/* SPDX-License-Identifier: MIT */
/*
 * The tools run_python and run_shell, in a fresh cell or in a session's.
 */
#include <stdlib.h>
#include <string.h>

#include "api/app.h"
#include "api/mcp.h"
#include "api/run.h"
#include "contract/media.h"
#include "contract/mcp/mcp_result.h"
#include "contract/run_files.h"
#include "server/serve.h"

#include "base/basics.h"

#define MCP_WORK_LEFT (2 * MCP_LEFT_MAX)
#define TICK_MS 1000
#define LINE_BYTES 200
#define SVG "image/svg+xml"
#define MAIN "__main__.py"
/* The program's name in a session, whose files are not ours; it is removed
 * after the run. */
#define SESSION_MAIN ".inline-main.py"
#define OUTPUT_MAX (16 << 20) /* of each stream; more is dropped */
#define PROCESSES 64
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000

/* A run of a tool. */
struct mcp_work {
	struct mcp_exchange *x;
	struct api_run run;
	struct mcp_output out;
	struct mcp_output err;
	int64_t shown;	    /* bytes of all shown files */
	int64_t started_ms; /* monotonic; 0: not yet */
};

/* ---- the cell of a session, for one call ---- */

void
mcp_no_session(struct mcp_exchange *x)
{
	mcp_trouble(x,
	    "There is no session '%.60s': it has ended, or never was. Make "
	    "another one with create_session; its folder is empty.",
	    x->call.session.data);
}

bool
mcp_resume(struct mcp_exchange *x, struct lease *b)
{
	struct err err;

	if (session_resume(x->app, x->call.session.data, http_fd(x->req),
		MCP_TURN_MS, b, &err) == 0)
		return true;
	if (err.code != ERR_TIMEOUT)
		mcp_no_session(x);
	else if (!http_client_gone(x->req))
		mcp_trouble(x,
		    "The session is busy with another call. Try again when "
		    "that has ended.");
	return false;
}

bool
mcp_ask(struct mcp_exchange *x, struct lease *b,
    const struct cell_request *request,
    void (*event)(void *arg, const struct cell_event *event), void *arg,
    struct cell_result *result)
{
	struct api_run run = { .app = x->app,
		.req = x->req,
		.request = request,
		.c = { .event = event, .arg = arg } };
	bool good = api_run_in(&run, b, false);

	*result = run.result;
	return good;
}

void
mcp_explain(struct mcp_exchange *x, const struct cell_result *result)
{
	static const char *const texts[] = {
		[ERROR_NOT_INSIDE] = "is a link, or leads out of the folder",
		[ERROR_NOT_FOUND] = "is not there",
		[ERROR_IS_DIRECTORY] = "is a folder",
		[ERROR_NOT_DIRECTORY] = "is no folder",
		[ERROR_TOO_LARGE] = "is too large",
		[ERROR_NO_SPACE] = "does not fit: the folder is full",
		[ERROR_NOT_REGULAR] = "is neither file nor folder",
		[ERROR_PERMISSION] = "may not be opened",
	};
	size_t count = sizeof(texts) / sizeof(texts[0]);
	size_t i = (size_t)result->error;
	const char *path = x->call.path.len > 0 ? x->call.path.data : ".";

	if (result->error_path[0] != '\0')
		path = result->error_path;
	log_info("the cell says: %s", result->error_text);
	mcp_trouble(x, "'%.200s' %s.", path,
	    i < count && texts[i] != NULL ? texts[i] : "cannot be had");
}

/* ---- files ---- */

static void
mcp_work_whole(struct api_run *run)
{
	struct mcp_work *w = run->arg;
	struct run_file *file = run->file;
	bool counted = file->content.len > 0;

	if (file->type == NULL)
		file->type = media_type(file->path, "\0", 1);
	mcp_check_picture(file);
	if (counted && file->content.len == 0)
		w->shown -= file->size;
}

/* Small pictures are shown, so they are kept in memory, too.  The type is
 * reported whether the store takes the file or not. */
static void
mcp_work_bytes(struct api_run *run, const struct cell_event *event)
{
	struct mcp_work *w = run->arg;
	struct run_file *file = run->file;
	struct buf *content;
	int64_t most;

	if (file == NULL)
		return;
	content = &file->content;
	if (file->type == NULL)
		file->type = media_type(file->path, event->data, event->len);
	most = strcmp(file->type, SVG) == 0 ? MCP_SHOWN_TEXT_BYTES :
	    media_is_picture(file->type)    ? MEDIA_PICTURE_BYTES :
					      0;
	/* All pictures of a run together have the room of one. */
	if (file->size > most ||
	    (content->len == 0 && w->shown + file->size > MEDIA_PICTURE_BYTES))
		return;
	w->shown += content->len == 0 ? file->size : 0;
	buf_add(content, event->data, event->len);
}

/* ---- other events ---- */

static void
mcp_work_started(struct api_run *run)
{
	((struct mcp_work *)run->arg)->started_ms = clock_monotonic_ms();
}

static void
mcp_work_output(struct api_run *run, const struct cell_event *event)
{
	struct mcp_work *w = run->arg;

	mcp_output_add(event->stream == 1 ? &w->out : &w->err, event->data,
	    event->len);
}

/* Report progress to the client, with the last line of the output. */
static void
mcp_work_tick(void *arg)
{
	struct mcp_work *w = ((struct api_run *)arg)->arg;
	auto_buf struct buf line = BUF_INIT(4 * LINE_BYTES);
	int64_t ms = w->started_ms == 0 ? -1 :
					  clock_monotonic_ms() - w->started_ms;

	mcp_output_last_line(&line, &w->out, LINE_BYTES);
	mcp_tell(w->x, ms, w->x->call.timeout_s * 1000, &line);
}

/* ---- begin and end ---- */

static void
mcp_work_free(struct mcp_work *w)
{
	mcp_output_release(&w->out);
	mcp_output_release(&w->err);
	free(w);
}

static void
mcp_work_answer(struct api_run *r)
{
	struct mcp_work *w = r->arg;
	const struct mcp_run run = {
		.out = &w->out,
		.err = &w->err,
		.cell = &r->result,
		.duration_ms = r->result.wall_us / 1000,
		.timeout_s = w->x->call.timeout_s,
		.files = &r->files,
		.more_left = r->more_files || r->result.cut,
	};

	if (r->result.reason == REASON_ERROR) {
		mcp_explain(w->x, &r->result);
		return;
	}
	mcp_add_run(&w->x->body, &w->x->m, &run);
	mcp_send(w->x);
}

static void
mcp_work_busy(struct api_run *run)
{
	mcp_busy(((struct mcp_work *)run->arg)->x);
}

static void
mcp_work_lost(struct api_run *run)
{
	mcp_trouble(((struct mcp_work *)run->arg)->x,
	    "A fault of Inline's, not of the code: the container was lost, and "
	    "nothing is known of what the run did (reference %s).",
	    run->reference);
}

static const struct run_front mcp_front = {
	.kind = API_MCP,
	.keep = RUN_KEEP_PATHS,
	.files_max = MCP_WORK_LEFT,
	.started = mcp_work_started,
	.output = mcp_work_output,
	.bytes = mcp_work_bytes,
	.whole = mcp_work_whole,
	.answer = mcp_work_answer,
	.busy = mcp_work_busy,
	.lost = mcp_work_lost,
};

/* Heap; to be freed.  request: as for struct api_run. */
static struct mcp_work *
mcp_work_new(struct mcp_exchange *x, const struct cell_request *request)
{
	struct mcp_work *w = xcalloc(1, sizeof(*w));

	w->x = x;
	w->out = (struct mcp_output)MCP_OUTPUT_INIT;
	w->err = (struct mcp_output)MCP_OUTPUT_INIT;
	w->run = (struct api_run){ .front = &mcp_front,
		.arg = w,
		.app = x->app,
		.req = x->req,
		.request = request,
		.lease_wait_ms = MCP_WAIT_MS,
		.c = { .tick = mcp_work_tick, .tick_ms = TICK_MS } };
	return w;
}

/* Cells of runs start Python alone: it becomes the shell. */
static const char shell_code[] =
    "import os, sys\n"
    "for shell in 'bash', 'sh':\n"
    "    try:\n"
    "        os.execvp(shell, [shell, '-c', sys.argv[1]])\n"
    "    except FileNotFoundError:\n"
    "        pass\n"
    "sys.exit('there is no shell in this image')\n";

/* ---- the files that it is given ---- */

static void
mcp_refuse_file(struct mcp_exchange *x, size_t i, const struct err *err)
{
	const struct mcp_file *files = x->call.files.items;

	if (err->code == ERR_LIMIT)
		mcp_trouble(x,
		    "files[%zu]: the files are too large together. Give fewer "
		    "of them.",
		    i);
	else if (err->code == ERR_UNAVAILABLE)
		mcp_trouble(x,
		    "files[%zu]: a fault of Inline's: the file is on another "
		    "host, which does not give it just now. Try again.",
		    i);
	else if (err->code != ERR_TIMEOUT) /* the client is gone */
		mcp_trouble(x,
		    "files[%zu]: there is no file with the file_id '%.60s': it "
		    "was never there, or its time is over. Give its content as "
		    "text or base64.",
		    i, files[i].id.data);
}

/* False: one of them is not there, which was answered. */
static bool
mcp_open_inputs(struct api_inputs *in, struct mcp_exchange *x)
{
	const struct mcp_file *files = x->call.files.items;
	struct err err = { .code = ERR_NONE };

	for (size_t i = 0; i < x->call.files.count; i++) {
		const struct mcp_file *file = &files[i];
		struct cell_input *input = file->id.data == NULL ?
		    api_inputs_add(in, file->path.data, file->content.data,
			file->content.len) :
		    api_inputs_add_file(in, file->path.data,
			nodes_get_file(x->app, x->req, file->id.data,
			    file->id.len, NULL, &err));

		if (input == NULL) {
			mcp_refuse_file(x, i, &err);
			return false;
		}
		input->mtime = -1;
	}
	return true;
}

/* The program is a file of the run, under a name that nobody sees. */
static void
put_program(struct cell_request *cell, struct api_inputs *in, const char *path,
    const struct cell_bytes *code)
{
	api_inputs_add(in, path, code->data, code->len)->mtime = -1;
	cell->path = path;
	cell->display = true;
}

/* ---- in a fresh cell ---- */

static void
run_fresh(struct mcp_exchange *x, struct cell_request cell,
    struct api_inputs *in)
{
	const struct mcp_call *call = &x->call;
	const struct cell_bytes words[] = { { "-c", 2 },
		{ shell_code, sizeof(shell_code) - 1 },
		{ call->code.data, call->code.len } };
	struct mcp_work *w;

	if (call->tool == MCP_RUN_SHELL) {
		cell.plain = true;
		cell.words = words;
		cell.word_count = sizeof(words) / sizeof(words[0]);
	} else {
		put_program(&cell, in, MAIN, &call->code);
	}
	if (!mcp_open_inputs(in, x))
		return;
	cell.inputs = in->items;
	cell.input_count = in->count;
	w = mcp_work_new(x, &cell);
	api_run(&w->run, call->python.data);
	api_run_answer(&w->run);
	mcp_work_free(w);
}

/* ---- in a session ---- */

static void
run_in_session(struct mcp_exchange *x, struct cell_request *cell,
    struct api_inputs *in)
{
	const struct mcp_call *call = &x->call;
	struct lease b;
	struct mcp_work *w;

	cell->collect_how |= COLLECT_NEW;
	if (call->tool == MCP_RUN_SHELL) {
		cell->op = OP_BASH;
		cell->source = call->code.data;
		cell->source_len = call->code.len;
	} else {
		put_program(cell, in, SESSION_MAIN, &call->code);
	}
	if (!mcp_open_inputs(in, x))
		return;
	cell->inputs = in->items;
	cell->input_count = in->count;
	if (mcp_resume(x, &b)) {
		w = mcp_work_new(x, cell);
		if (api_run_in(&w->run, &b, true) && cell->op == OP_RUN)
			(void)api_remove_in(&w->run, &b, SESSION_MAIN);
		lease_park(&b);
		api_run_answer(&w->run);
		mcp_work_free(w);
	}
}

/* ---- either ---- */

void
mcp_run_tool(struct mcp_exchange *x)
{
	const struct mcp_call *call = &x->call;
	const struct mcp_file *files = call->files.items;
	bool fresh = call->session.data == NULL;
	const char *program = call->tool == MCP_RUN_SHELL ? NULL :
	    fresh					  ? MAIN :
							    SESSION_MAIN;
	struct api_inputs in = { .items = NULL };
	struct cell_request cell = {
		.op = OP_RUN,
		.folder = "/workspace",
		.env = api_environment,
		.args = call->argv,
		.echo = call->tool == MCP_RUN_PYTHON,
		.input = call->input.data,
		.input_len = call->input.len,
		.wall_ms = call->timeout_s * 1000,
		.output_max = OUTPUT_MAX,
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
		.collect_files = MCP_LEFT_MAX,
		.collect_bytes = FILE_BYTES,
		.collect_total = FILE_BYTES,
		.collect_how = COLLECT_BYTES,
		.collect_ms = COLLECT_MS,
	};

	for (size_t i = 0; program != NULL && i < call->files.count; i++) {
		if (strcmp(files[i].path.data, program) != 0)
			continue;
		mcp_trouble(x, "files[%zu]: %s is the program itself.", i,
		    program);
		return;
	}
	if (!mcp_enter(x, fresh ? GATE_CELL : GATE_COMMAND))
		return;
	if (x->m.progress != NULL)
		mcp_tell(x, 0, cell.wall_ms, &(const struct buf){ .len = 0 });
	if (fresh)
		run_fresh(x, cell, &in);
	else
		run_in_session(x, &cell, &in);
	api_inputs_release(&in);
}
