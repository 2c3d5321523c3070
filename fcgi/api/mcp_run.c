/* SPDX-License-Identifier: MIT */
/*
 * The tools run_python and run_shell: in a fresh cell, or in a session's.
 */
#include <poll.h>
#include <string.h>

#include "app.h"
#include "mcp_work.h"
#include "../server/http.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"

#define MAIN "__main__.py"
/* In a session, whose files are not ours: removed after the run. */
#define SESSION_MAIN ".inline-main.py"
#define OUTPUT_MAX (16 << 20) /* of each stream; more is dropped */
#define PROCESSES 64
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define FILE_MODE 0644

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

struct inputs {
	struct cell_input items[MCP_FILES_MAX + 1];
	size_t count;
	size_t own; /* the first ones, which are no files of the call */
};

static void
inputs_close(struct inputs *in, const struct mcp_call *call)
{
	for (size_t i = in->own; i < in->count; i++)
		if (call->files[i - in->own].id.data != NULL)
			api_input_unmap(&in->items[i]);
}

static void
refuse_file(struct mcp_exchange *x, size_t i, const struct err *err)
{
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
	else if (err->code != ERR_TIMEOUT) /* nobody waits for an answer */
		mcp_trouble(x,
		    "files[%zu]: there is no file with the file_id '%.60s': it "
		    "was never there, or its time is over. Give its content as "
		    "text or base64.",
		    i, x->call.files[i].id.data);
}

/* False: one of them is not there, which was answered; nothing to close. */
static bool
inputs_open(struct inputs *in, struct mcp_exchange *x)
{
	const struct mcp_call *call = &x->call;
	struct err err = { .code = ERR_NONE };

	for (size_t i = 0; i < call->file_count; i++) {
		const struct mcp_file *file = &call->files[i];
		struct cell_input *input = &in->items[in->count];

		*input = (struct cell_input){ .content = { file->content.data,
						  file->content.len } };
		/* One of the store is mapped: it may be large. */
		if (file->id.data != NULL &&
		    !api_input_find(input, x->app, x->req, file->id.data,
			file->id.len, &err)) {
			inputs_close(in, call);
			refuse_file(x, i, &err);
			return false;
		}
		input->path = file->path.data;
		input->mode = FILE_MODE;
		input->mtime = -1;
		in->count++;
	}
	return true;
}

/* The program is a file of the run, under a name that nobody sees. */
static void
put_program(struct cell_request *cell, struct inputs *in, const char *path,
    const struct mcp_bytes *code)
{
	in->own = in->count = 1;
	in->items[0] = (struct cell_input){ .path = path,
		.content = { code->data, code->len },
		.mode = FILE_MODE,
		.mtime = -1 };
	cell->path = path;
	cell->display = true;
}

/* ---- in a fresh cell ---- */

static void
run_fresh(struct mcp_exchange *x, struct cell_request cell, struct inputs *in)
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
	cell.op = OP_RUN;
	cell.collect_files = MCP_LEFT_MAX;
	cell.collect_bytes = FILE_BYTES;
	cell.collect_total = FILE_BYTES;
	cell.collect_how = COLLECT_BYTES;
	cell.collect_ms = COLLECT_MS;
	if (!inputs_open(in, x))
		return;
	cell.inputs = in->items;
	cell.input_count = in->count;
	w = mcp_work_new(x, &cell);
	api_run(&w->run, call->python.data);
	mcp_work_answer(w);
	mcp_work_free(w);
	inputs_close(in, call);
}

/* ---- in a session ---- */

/* False: the cell is lost. */
static bool
remove_program(struct mcp_work *w, struct mcp_borrowed *b)
{
	b->lost = w->x->call.tool != MCP_RUN_SHELL &&
	    !api_remove_in(&w->run, b->cell_fd, b->connection, SESSION_MAIN);
	return !b->lost;
}

/* Its files are looked at before and after: what has changed comes back. */
static void
run_borrowed(struct mcp_work *w, struct mcp_borrowed *b)
{
	const struct pollfd gone = { .fd = http_fd(w->x->req),
		.events = POLLRDHUP };
	struct mcp_scan before = { .items = NULL };
	struct mcp_scan after = { .items = NULL };
	int64_t since_s = clock_wall_ms() / 1000;

	if (mcp_scan(&before, w->x, b)) {
		w->run.c.cancel = &gone;
		api_run_in(&w->run, b->cell_fd, b->connection);
		b->lost = w->run.end != API_RESULT || w->run.lost;
		if (!b->lost && remove_program(w, b) && !w->cancelled &&
		    mcp_scan(&after, w->x, b))
			mcp_scan_collect(w, b, &before, &after, since_s);
	} else {
		w->run.end = API_LOST;
	}
	mcp_scan_release(&before);
	mcp_scan_release(&after);
}

static void
run_in_session(struct mcp_exchange *x, struct cell_request *cell,
    struct inputs *in)
{
	const struct mcp_call *call = &x->call;
	struct mcp_borrowed b;
	struct mcp_work *w;

	cell->op = OP_RUN;
	if (call->tool == MCP_RUN_SHELL) {
		cell->op = OP_BASH;
		cell->source = call->code.data;
		cell->source_len = call->code.len;
	} else {
		put_program(cell, in, SESSION_MAIN, &call->code);
	}
	if (!inputs_open(in, x))
		return;
	cell->inputs = in->items;
	cell->input_count = in->count;
	if (mcp_borrow(x, &b)) {
		w = mcp_work_new(x, cell);
		run_borrowed(w, &b);
		mcp_give_back(&b);
		mcp_work_answer(w);
		mcp_work_free(w);
	}
	inputs_close(in, call);
}

/* ---- either ---- */

void
mcp_run_tool(struct mcp_exchange *x)
{
	const struct mcp_call *call = &x->call;
	bool fresh = call->session.data == NULL;
	const char *program = call->tool == MCP_RUN_SHELL ? NULL :
	    fresh					  ? MAIN :
							    SESSION_MAIN;
	struct inputs in = { .count = 0 };
	struct cell_request cell = {
		.folder = "/workspace",
		.env = api_environment,
		.args = call->args,
		.echo = call->tool == MCP_RUN_PYTHON,
		.input = call->input.data,
		.input_len = call->input.len,
		.wall_ms = call->timeout_s * 1000,
		.output_max = OUTPUT_MAX,
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
	};

	for (size_t i = 0; program != NULL && i < call->file_count; i++) {
		if (strcmp(call->files[i].path.data, program) != 0)
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
}
