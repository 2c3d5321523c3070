/* SPDX-License-Identifier: MIT */
/*
 * The tools run_python and run_shell, in a fresh cell or in a session's.  A
 * session's cell does not tell which files a run has made or changed, so its
 * folders are listed before and after the run.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "api/app.h"
#include "api/mcp.h"
#include "api/run.h"
#include "contract/mcp/mcp_media.h"
#include "contract/mcp/mcp_result.h"
#include "contract/stage.h"
#include "files/filestore.h"
#include "server/http.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#define MCP_WORK_LEFT (2 * MCP_LEFT_MAX)
#define TICK_MS 1000
#define LINE_BYTES 200
#define PATH_BYTES 4096
#define SVG "image/svg+xml"
#define SCAN_FOLDERS 64
#define SCAN_ENTRIES 2000
/* Time for all lists of folders, and for all files that are read. */
#define LIST_MS 5000
#define READ_MS 20000
#define MAIN "__main__.py"
/* The program's name in a session, whose files are not ours; it is removed
 * after the run. */
#define SESSION_MAIN ".inline-main.py"
#define OUTPUT_MAX (16 << 20) /* of each stream; more is dropped */
#define PROCESSES 64
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define FILE_MODE 0644

/* A run of a tool. */
struct mcp_work {
	struct mcp_exchange *x;
	struct api_run run;
	struct mcp_output out;
	struct mcp_output err;
	struct mcp_left left[MCP_WORK_LEFT];
	size_t left_count;
	bool more_left;
	struct mcp_left *file;	    /* that is coming in */
	int64_t taken;		    /* bytes of it so far */
	struct filestore_new fresh; /* the same, in the store */
	int64_t shown;		    /* bytes of all that are shown */
	int64_t started_ms;	    /* monotonic; 0: not yet */
	bool cancelled;		    /* its client is gone */
};

/* ---- files ---- */

static struct mcp_left *
add_left(struct mcp_work *w, const char *path, int64_t size)
{
	auto_buf struct buf text = BUF_INIT(PATH_BYTES);
	struct mcp_left *file;

	if (w->left_count == MCP_WORK_LEFT) {
		w->more_left = true;
		return NULL;
	}
	path_text_write(&text, path);
	file = &w->left[w->left_count++];
	*file = (struct mcp_left){ .path = buf_steal(&text, NULL),
		.size = size,
		.type = mcp_media_type(path, "\0", 1),
		.content = BUF_INIT(MCP_PICTURE_BYTES) };
	return file;
}

/* A file that is there but is not kept; why: static. */
static void
mcp_work_leave_out(struct mcp_work *w, const char *path, int64_t size,
    const char *why)
{
	struct mcp_left *file = add_left(w, path, size);

	if (file != NULL)
		file->why = why;
}

/* The last file is whole. */
static void
mcp_work_end_file(struct mcp_work *w)
{
	struct mcp_left *file = w->file;
	bool counted;

	if (file == NULL)
		return;
	if (w->fresh.store != NULL)
		file->id = api_left_keep(&w->fresh, file->path, &file->why);
	counted = file->content.len > 0;
	mcp_check_picture(file);
	if (counted && file->content.len == 0)
		w->shown -= file->size;
	w->file = NULL;
}

static void
begin_file(struct mcp_work *w, const struct cell_event *event)
{
	struct err err;

	mcp_work_end_file(w);
	w->file = add_left(w, event->name, event->size);
	w->taken = 0;
	if (w->file != NULL &&
	    filestore_begin(&w->x->app->store, &w->fresh, &err) != 0)
		w->file->why = api_left_refused(&w->fresh, &err);
}

/* Small pictures are shown, so they are kept in memory, too. */
static void
take_bytes(struct mcp_work *w, const struct cell_event *event)
{
	struct mcp_left *file = w->file;
	struct buf *content;
	int64_t most;
	struct err err;

	if (file == NULL)
		return;
	content = &file->content;
	if (w->fresh.store != NULL &&
	    filestore_write(&w->fresh, event->data, event->len, &err) != 0)
		w->file->why = api_left_refused(&w->fresh, &err);
	/* The type is told whether the store takes the file or not. */
	if (w->taken == 0)
		file->type = mcp_media_type(file->path, event->data,
		    event->len);
	w->taken += (int64_t)event->len;
	most = strcmp(file->type, SVG) == 0  ? MCP_SHOWN_TEXT_BYTES :
	    mcp_media_is_picture(file->type) ? MCP_PICTURE_BYTES :
					       0;
	/* All pictures of a run together have the room of one. */
	if (file->size > most ||
	    (content->len == 0 && w->shown + file->size > MCP_PICTURE_BYTES))
		return;
	w->shown += content->len == 0 ? file->size : 0;
	buf_add(content, event->data, event->len);
}

/* ---- what comes from the cell ---- */

/* An event of the cell: of a run, or of a file that is read. */
static void
mcp_work_event(void *arg, const struct cell_event *event)
{
	struct mcp_work *w = arg;

	switch (event->kind) {
	case CELL_STARTED:
		w->started_ms = clock_monotonic_ms();
		break;
	case CELL_OUTPUT:
		mcp_output_add(event->stream == 1 ? &w->out : &w->err,
		    event->data, event->len);
		break;
	case CELL_FILE:
		begin_file(w, event);
		break;
	case CELL_BYTES:
		take_bytes(w, event);
		break;
	case CELL_LEFT_OUT:
		mcp_work_leave_out(w, event->name, event->size,
		    api_run_left_out[event->why]);
		break;
	case CELL_ENTRY:
	case CELL_RESULT:
	case CELL_QUIET:
		break;
	}
}

/* The client is told that it goes on, and what was printed last. */
static void
tick(void *arg)
{
	struct mcp_work *w = arg;
	auto_buf struct buf line = BUF_INIT(4 * LINE_BYTES);
	int64_t ms = w->started_ms == 0 ? -1 :
					  clock_monotonic_ms() - w->started_ms;

	mcp_output_last_line(&line, &w->out, LINE_BYTES);
	mcp_tell(w->x, ms, w->x->call.timeout_s * 1000, &line);
}

static bool
cancelled(void *arg)
{
	struct mcp_work *w = arg;

	w->cancelled = true;
	return true;
}

/* ---- begin and end ---- */

/* Heap; to be freed.  request: as for struct api_run. */
static struct mcp_work *
mcp_work_new(struct mcp_exchange *x, const struct cell_request *request)
{
	struct mcp_work *w = xcalloc(1, sizeof(*w));

	w->x = x;
	w->out = (struct mcp_output)MCP_OUTPUT_INIT;
	w->err = (struct mcp_output)MCP_OUTPUT_INIT;
	w->run = (struct api_run){ .app = x->app,
		.req = x->req,
		.request = request,
		.lease_wait_ms = MCP_WAIT_MS,
		.c = { .event = mcp_work_event,
		    .tick = tick,
		    .tick_ms = TICK_MS,
		    .cancelled = cancelled,
		    .arg = w } };
	return w;
}

static void
mcp_work_free(struct mcp_work *w)
{
	filestore_abort(&w->fresh);
	for (size_t i = 0; i < w->left_count; i++) {
		free(w->left[i].path);
		free(w->left[i].id);
		buf_release(&w->left[i].content);
	}
	mcp_output_release(&w->out);
	mcp_output_release(&w->err);
	free(w);
}

static void
answer_result(struct mcp_work *w)
{
	const struct mcp_run run = {
		.out = &w->out,
		.err = &w->err,
		.cell = &w->run.result,
		.duration_ms = w->run.result.wall_us / 1000,
		.timeout_s = w->x->call.timeout_s,
		.left = w->left,
		.left_count = w->left_count,
		.more_left = w->more_left || w->run.result.cut,
	};

	mcp_add_run(&w->x->body, &w->x->m, &run);
	mcp_send(w->x);
}

/* The run has ended, whichever way: answer and count it. */
static void
mcp_work_answer(struct mcp_work *w)
{
	struct api_run *run = &w->run;

	mcp_work_end_file(w);
	if (w->cancelled)
		run->end = RUN_STOPPED;
	switch (run->end) {
	case RUN_REFUSED:
		mcp_busy(w->x);
		break;
	case RUN_BROKEN:
	case RUN_OVERDUE:
		mcp_trouble(w->x,
		    "A fault of Inline's, not of the code: the container was "
		    "lost, and nothing is known of what the run did "
		    "(reference %s).",
		    run->reference);
		break;
	case RUN_STOPPED:
	case RUN_TOO_LATE:
	case RUN_TAKEN:
	case RUN_CANCELLED:
		break;
	case RUN_RESULT:
		if (run->result.reason == REASON_ERROR)
			mcp_explain(w->x, &run->result);
		else
			answer_result(w);
		break;
	}
	api_run_count(run, API_MCP);
}

/* ---- the files of a session, before and after a run ---- */

struct mcp_scan {
	struct mcp_scanned *items;
	size_t count;
	bool cut; /* there was no time or room for all of it */
};

struct mcp_scanned {
	char *path; /* heap */
	int64_t size;
	int64_t mtime; /* seconds */
	bool is_file;  /* a regular one: others cannot be sent */
};

/* A scan under way: the folders that it has met. */
struct scanning {
	struct mcp_scan *scan;
	char *folders[SCAN_FOLDERS]; /* heap */
	size_t folder_count;
	size_t at; /* the one that is being listed */
};

/* Folders with a dot before their names are caches and settings. */
static void
take_entry(void *arg, const struct cell_event *event)
{
	struct scanning *s = arg;
	const char *folder = s->folders[s->at];
	char *path;

	if (event->kind != CELL_ENTRY)
		return;
	if (strlen(folder) + strlen(event->name) + 2 > LIMIT_PATH) {
		s->scan->cut = true;
		return;
	}
	path = xprintf("%s%s%s", folder, folder[0] == '\0' ? "" : "/",
	    event->name);
	if (event->entry_kind == ENTRY_DIRECTORY && event->name[0] != '.' &&
	    s->folder_count < SCAN_FOLDERS) {
		s->folders[s->folder_count++] = path;
		return;
	}
	if (event->entry_kind != ENTRY_DIRECTORY &&
	    s->scan->count < SCAN_ENTRIES) {
		s->scan->items[s->scan->count++] = (struct mcp_scanned){ path,
			event->size, event->mtime,
			event->entry_kind == ENTRY_FILE };
		return;
	}
	free(path);
	s->scan->cut |= event->entry_kind != ENTRY_DIRECTORY ||
	    event->name[0] != '.';
}

/* The time until the deadline, for one request; 0: it is over. */
static int64_t
left_ms(int64_t deadline)
{
	int64_t left = deadline - clock_monotonic_ms();

	return left > 0 ? left : 0;
}

/* List the folders as far as there is time and room.  False: the cell is lost.
 */
static bool
mcp_scan(struct mcp_scan *scan, struct mcp_exchange *x,
    struct session_borrowed *b)
{
	struct scanning s = {
		.scan = scan, .folders = { xstrdup("") }, .folder_count = 1
	};
	const int64_t deadline = clock_monotonic_ms() + LIST_MS;
	struct cell_result result;
	bool good = true;

	scan->items = xcalloc(SCAN_ENTRIES, sizeof(*scan->items));
	for (; good && s.at < s.folder_count; s.at++) {
		const struct cell_request request = { .op = OP_LIST,
			.folder = "/workspace",
			.path = s.folders[s.at],
			.count = SCAN_ENTRIES,
			.wall_ms = left_ms(deadline) };

		if (request.wall_ms == 0) {
			scan->cut = true;
			break;
		}
		good = mcp_ask(x, b, &request, take_entry, &s, &result);
		scan->cut |= good && result.total > SCAN_ENTRIES;
	}
	for (size_t i = 0; i < s.folder_count; i++)
		free(s.folders[i]);
	return good;
}

static void
mcp_scan_release(struct mcp_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		free(scan->items[i].path);
	free(scan->items);
	*scan = (struct mcp_scan){ .items = NULL };
}

/* A file that was written in the second in which the run began counts as
 * changed. */
static bool
has_changed(const struct mcp_scanned *item, const struct mcp_scan *before,
    int64_t since_s)
{
	if (item->mtime >= since_s)
		return true;
	for (size_t i = 0; i < before->count; i++)
		if (strcmp(before->items[i].path, item->path) == 0)
			return before->items[i].size != item->size ||
			    before->items[i].mtime != item->mtime;
	return true;
}

/* Read the files that have changed from one scan to the other, or since that
 * second of the wall clock. */
static void
mcp_scan_collect(struct mcp_work *w, struct session_borrowed *b,
    const struct mcp_scan *before, const struct mcp_scan *after,
    int64_t since_s)
{
	const int64_t deadline = clock_monotonic_ms() + READ_MS;
	int64_t room = FILE_BYTES;
	struct cell_result result;

	w->more_left |= before->cut || after->cut;
	for (size_t i = 0; i < after->count && !b->lost; i++) {
		const struct mcp_scanned *item = &after->items[i];
		const struct cell_request request = { .op = OP_READ,
			.folder = "/workspace",
			.path = item->path,
			.max_bytes = room,
			.wall_ms = left_ms(deadline) };

		if (!has_changed(item, before, since_s))
			continue;
		if (!item->is_file) {
			mcp_work_leave_out(w, item->path, 0,
			    api_run_left_out[LEFT_OUT_KIND]);
			continue;
		}
		if (item->size > room || w->left_count >= MCP_LEFT_MAX ||
		    request.wall_ms == 0) {
			mcp_work_leave_out(w, item->path, item->size,
			    item->size > room	    ? "too large together" :
				request.wall_ms > 0 ? "too many files" :
						      "no time left");
			continue;
		}
		room -= item->size;
		if (mcp_ask(w->x, b, &request, mcp_work_event, w, &result) &&
		    result.reason == REASON_ERROR)
			mcp_work_leave_out(w, item->path, item->size,
			    "not readable");
		mcp_work_end_file(w);
	}
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

/* The session's files are listed before and after the run: the changed ones
 * come back. */
static void
run_borrowed(struct mcp_work *w, struct session_borrowed *b)
{
	const struct pollfd gone = { .fd = http_fd(w->x->req),
		.events = POLLRDHUP };
	struct mcp_scan before = { .items = NULL };
	struct mcp_scan after = { .items = NULL };
	int64_t since_s = clock_wall_ms() / 1000;

	if (mcp_scan(&before, w->x, b)) {
		w->run.c.cancel = &gone;
		if (api_run_in(&w->run, b) &&
		    (w->x->call.tool == MCP_RUN_SHELL ||
			api_remove_in(&w->run, b, SESSION_MAIN)) &&
		    !w->cancelled && mcp_scan(&after, w->x, b))
			mcp_scan_collect(w, b, &before, &after, since_s);
	} else {
		w->run.end = RUN_BROKEN;
	}
	mcp_scan_release(&before);
	mcp_scan_release(&after);
}

static void
run_in_session(struct mcp_exchange *x, struct cell_request *cell,
    struct inputs *in)
{
	const struct mcp_call *call = &x->call;
	struct session_borrowed b;
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
		session_holder_return(&b);
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
