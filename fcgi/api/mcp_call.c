/* SPDX-License-Identifier: MIT */
/*
 * The tools of POST /mcp: run_python and run_shell, in a fresh cell or in a
 * session's, and those of sessions and their files.
 */
#include <inttypes.h>
#include <string.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/mcp.h"
#include "api/run.h"
#include "contract/mcp/mcp_result.h"
#include "contract/mcp/mcp_tools.h"
#include "contract/media.h"
#include "contract/run_files.h"
#include "server/serve.h"

#include "base/basics.h"

/* Longest waits for a cell, and for a turn in a session.  Then the answer asks
 * the model to try again, before its client gives up. */
#define WAIT_MS 25000
#define TURN_MS 10000
#define FILE_TOOL_MS 10000
#define FOLDER "/workspace"
#define LEFT_MAX (2 * MCP_LEFT_MAX) /* in the list */
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
#define SESSION_LOST \
	"A fault of Inline's: the session is lost. Make another one with " \
	"create_session."

/* A call, and the run of a tool. */
struct mcp_work {
	struct mcp_exchange *x;
	struct mcp_call call;
	struct api_run run;
	struct mcp_output out;
	struct mcp_output err;
	int64_t shown;	    /* bytes of all shown files */
	int64_t started_ms; /* monotonic; 0: not yet */
	json_t *result;	    /* of the run; NULL: none yet */
};

/* ---- refusals ---- */

/* The answer says why a request to a cell has failed. */
static json_t *
mcp_explain_error(const struct mcp_work *w, const struct cell_result *result)
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
	size_t i = (size_t)result->error;
	const char *path = w->call.file.path.data;

	if (result->error_path[0] != '\0')
		path = result->error_path;
	log_info("the cell says: %s", result->error_text);
	return mcp_trouble("'%.200s' %s.", path[0] != '\0' ? path : ".",
	    i < sizeof(texts) / sizeof(texts[0]) && texts[i] != NULL ?
		texts[i] :
		"cannot be had");
}

static json_t *
explain_no_session(const struct mcp_work *w)
{
	return mcp_trouble(
	    "There is no session '%.60s': it has ended, or never was. Make "
	    "another one with create_session; its folder is empty.",
	    w->call.session.data);
}

/* Claim what the call needs.  NULL: it has it; else the result. */
static json_t *
claim_use(struct mcp_exchange *x, enum gate_use use)
{
	if (!mcp_claim_slot(x))
		return mcp_trouble(MCP_BUSY);
	if (use == GATE_GLANCE || gate_claim(x->app, x->req, use))
		return NULL;
	return mcp_trouble("%s",
	    use != GATE_COMMAND ?
		"All cells of this token are in use: nothing was run. Wait "
		"for another call to end, or close a session." :
		"This token has as many commands running as it may. Try again "
		"when one has ended.");
}

/* Lease the session's cell.  NULL: it is leased; else the result. */
static json_t *
resume_session(struct mcp_work *w, struct lease *b)
{
	struct err err;

	if (session_resume(w->x->app, w->call.session.data, http_fd(w->x->req),
		TURN_MS, b, &err) == 0)
		return NULL;
	if (err.code != ERR_TIMEOUT)
		return explain_no_session(w);
	return mcp_trouble("The session is busy with another call. Try again "
			   "when that has ended.");
}

/* ---- sessions ---- */

static json_t *
create_session(struct mcp_work *w)
{
	struct mcp_exchange *x = w->x;
	char id[SESSION_ID_SIZE];
	struct lease lease;
	struct err err;

	session_make_id(x->app, id);
	if (session_lease(x->app, x->req, id, w->call.python.data,
		w->call.ttl_s * 1000, 0, &lease, &err) != REFUSAL_NONE) {
		log_warn("no cell: %s", err.text);
		return mcp_trouble(
		    "There is no room for another session just now. Close one "
		    "that you do not need, or try again in %" PRId64 " s.",
		    lease.next_ms / 1000 + 1);
	}
	if (http_client_gone(x->req)) {
		lease_close(&lease);
		return NULL;
	}
	lease_park(&lease);
	return mcp_pack_session(id, clock_wall_ms() / 1000 + w->call.ttl_s);
}

/* ---- files of a session ---- */

/* Send one request to the cell; the event function gets its events.  False: the
 * cell is lost. */
static bool
ask_cell(struct mcp_work *w, struct lease *b,
    const struct cell_request *request,
    void (*event)(void *arg, const struct cell_event *event), void *arg,
    struct cell_result *result)
{
	struct api_run run = { .app = w->x->app,
		.req = w->x->req,
		.request = request,
		.c = { .event = event, .arg = arg } };
	bool good = api_run_in(&run, b, false);

	*result = run.result;
	return good;
}

/* A folder, or a part of a file: the cell sends its beginning, of which some is
 * dropped. */
struct sent {
	struct mcp_listing list;
	struct buf part;
	int64_t skip;
};

static void
add_to_sent(void *arg, const struct cell_event *event)
{
	struct sent *sent = arg;
	size_t skip = event->len;

	if (event->kind == CELL_ENTRY)
		mcp_listing_add(&sent->list, event->name, event->entry_kind,
		    event->size);
	if (event->kind != CELL_BYTES)
		return;
	if (sent->skip < (int64_t)skip)
		skip = (size_t)sent->skip;
	sent->skip -= (int64_t)skip;
	buf_add(&sent->part, event->data + skip, event->len - skip);
}

/* List, read or write the file; path: as the cell has it. */
static json_t *
use_file(struct mcp_work *w, struct lease *b, const char *path)
{
	const struct mcp_call *call = &w->call;
	const bool lists = call->tool == MCP_LIST_FILES;
	const bool writes = call->tool == MCP_WRITE_FILE;
	const struct cell_request request = {
		.op = lists ? OP_LIST :
		    writes  ? OP_WRITE :
			      OP_READ,
		.folder = FOLDER,
		.path = path,
		.count = lists ? MCP_ENTRIES_MAX : 0,
		.content = call->file.content.data,
		.content_len = call->file.content.len,
		.max_bytes = call->offset + call->limit,
		.cut = !lists && !writes,
		.wall_ms = FILE_TOOL_MS,
	};
	struct sent sent = { MCP_LISTING_INIT(path), BUF_INIT(MCP_READ_MAX),
		call->offset };
	struct cell_result result;
	json_t *answer;

	if (!ask_cell(w, b, &request, add_to_sent, &sent, &result))
		answer = mcp_trouble(SESSION_LOST);
	else if (result.reason == REASON_ERROR)
		answer = mcp_explain_error(w, &result);
	else if (lists)
		answer = mcp_pack_listing(&sent.list, result.total);
	else if (writes)
		answer = mcp_pack_written(path, call->file.content.len);
	else
		answer = mcp_pack_read(call->file.path.data,
		    buf_str(&sent.part), sent.part.len, call->offset,
		    result.total);
	mcp_listing_release(&sent.list);
	buf_release(&sent.part);
	return answer;
}

/* Find the path of a file whose name is no UTF-8, if the client has sent the
 * text that it was given for it.  NULL: the call's own path is meant.  To be
 * freed. */
static char *
find_real_path(struct mcp_work *w, struct lease *b)
{
	const struct mcp_file *file = &w->call.file;
	auto_buf struct buf path = BUF_INIT(LIMIT_PATH + 1);
	struct cell_request request = { .op = OP_READ,
		.folder = FOLDER,
		.max_bytes = 1,
		.cut = true,
		.wall_ms = FILE_TOOL_MS };
	struct cell_result result;

	if (file->decoded || !path_text_read(&path, file->path.data))
		return NULL;
	request.path = buf_str(&path);
	if (!ask_cell(w, b, &request, NULL, NULL, &result) ||
	    (result.reason == REASON_ERROR &&
		result.error != ERROR_IS_DIRECTORY))
		return NULL;
	return buf_steal(&path, NULL);
}

/* The session is parked before the answer, which may have a slow reader. */
static json_t *
run_file_tool(struct mcp_work *w)
{
	struct lease b;
	auto_free char *real = NULL;
	json_t *result = resume_session(w, &b);

	if (result != NULL)
		return result;
	real = find_real_path(w, &b);
	result = b.lost ?
	    mcp_trouble(SESSION_LOST) :
	    use_file(w, &b, real != NULL ? real : w->call.file.path.data);
	lease_park(&b);
	return result;
}

/* ---- a run: its files ---- */

/* The file is whole: a picture that is not fit to be shown loses its content,
 * and `hidden` says why. */
static void
mcp_work_whole(struct api_run *run)
{
	struct mcp_work *w = run->arg;
	struct run_file *file = run->file;
	struct buf *content = &file->content;

	if (file->type == NULL)
		file->type = media_type(file->path, "\0", 1);
	if (!media_is_picture(file->type))
		return;
	if (file->size > MEDIA_PICTURE_BYTES)
		file->hidden = MEDIA_PICTURE_TOO_LONG;
	else if (content->len == 0)
		file->hidden = MCP_NO_ROOM;
	else
		file->hidden = media_picture_fault(&file->type,
		    buf_str(content), content->len);
	if (file->hidden == NULL)
		return;
	w->shown -= (int64_t)content->len;
	buf_reset(content);
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
	mcp_report_progress(w->x, ms, w->call.timeout_s * 1000, &line);
}

/* ---- its end ---- */

static void
mcp_work_answer(struct api_run *r)
{
	struct mcp_work *w = r->arg;
	const struct mcp_run run = {
		.out = &w->out,
		.err = &w->err,
		.cell = &r->result,
		.timeout_s = w->call.timeout_s,
		.files = &r->files,
		.more_left = r->more_files || r->result.cut,
		.links = w->x->m.links,
	};

	w->result = r->result.reason == REASON_ERROR ?
	    mcp_explain_error(w, &r->result) :
	    mcp_pack_run(&run);
}

static void
mcp_work_busy(struct api_run *run)
{
	((struct mcp_work *)run->arg)->result = mcp_trouble(MCP_BUSY);
}

static void
mcp_work_lost(struct api_run *run)
{
	((struct mcp_work *)run->arg)->result = mcp_trouble(
	    "A fault of Inline's, not of the code: the container was lost, and "
	    "nothing is known of what the run did (reference %s).",
	    run->reference);
}

static const struct run_front mcp_front = {
	.kind = API_MCP,
	.keep = RUN_KEEP_PATHS,
	.files_max = LEFT_MAX,
	.started = mcp_work_started,
	.output = mcp_work_output,
	.bytes = mcp_work_bytes,
	.whole = mcp_work_whole,
	.answer = mcp_work_answer,
	.busy = mcp_work_busy,
	.lost = mcp_work_lost,
};

/* ---- the files that it is given ---- */

/* NULL: the client is gone. */
static json_t *
refuse_input(const struct mcp_file *file, size_t i, const struct err *err)
{
	const char *text =
	    "there is no file with this id: it was never there, or its time is "
	    "over. Give its content as text or base64.";

	if (err->code == ERR_TIMEOUT)
		return NULL;
	if (err->code == ERR_LIMIT)
		text = "the files are too large together. Give fewer of them.";
	if (err->code == ERR_UNAVAILABLE)
		text = "a fault of Inline's: the file is on another host, "
		       "which does not give it just now. Try again.";
	return mcp_trouble("files[%zu], file_id '%.60s': %s", i, file->id.data,
	    text);
}

/* Add the files of the call.  False: one of them is not there, and w->result
 * says so. */
static bool
mcp_open_inputs(struct mcp_work *w, struct api_inputs *in, const char *program)
{
	const struct mcp_file *files = w->call.files.items;
	struct err err = { .code = ERR_NONE };

	for (size_t i = 0; i < w->call.files.count; i++) {
		const struct mcp_file *file = &files[i];
		struct cell_input *input;

		if (program != NULL && strcmp(file->path.data, program) == 0) {
			w->result =
			    mcp_trouble("files[%zu]: %s is the program itself.",
				i, program);
			return false;
		}
		input = file->id.data == NULL ?
		    api_inputs_add(in, file->path.data, file->content.data,
			file->content.len) :
		    api_inputs_add_file(in, file->path.data,
			nodes_get_file(w->x->app, w->x->req, file->id.data,
			    file->id.len, NULL, &err));
		if (input == NULL) {
			w->result = refuse_input(file, i, &err);
			return false;
		}
		input->mtime = -1;
	}
	return true;
}

/* ---- a run ---- */

static void
run_in_session(struct mcp_work *w)
{
	struct lease b;

	w->result = resume_session(w, &b);
	if (w->result != NULL)
		return;
	if (api_run_in(&w->run, &b, true) && w->call.tool == MCP_RUN_PYTHON)
		(void)api_remove_in(&w->run, &b, SESSION_MAIN);
	lease_park(&b);
	api_run_answer(&w->run);
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

static json_t *
mcp_run_code(struct mcp_work *w)
{
	const struct mcp_call *call = &w->call;
	const bool fresh = call->session.data == NULL;
	const bool shell = call->tool == MCP_RUN_SHELL;
	const char *program = shell ? NULL : fresh ? MAIN : SESSION_MAIN;
	const struct cell_bytes words[] = { { "-c", 2 },
		{ shell_code, sizeof(shell_code) - 1 },
		{ call->code.data, call->code.len } };
	struct api_inputs in = { .items = NULL };
	/* A program is a file of the run, which no answer lists. */
	struct cell_request cell = {
		.op = shell && !fresh ? OP_BASH : OP_RUN,
		.folder = FOLDER,
		.env = api_environment,
		.path = program,
		.args = call->argv,
		.echo = !shell,
		.display = !shell,
		.input = call->input.data,
		.input_len = call->input.len,
		.wall_ms = call->timeout_s * 1000,
		.output_max = OUTPUT_MAX,
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
		.collect_files = MCP_LEFT_MAX,
		.collect_bytes = FILE_BYTES,
		.collect_total = FILE_BYTES,
		.collect_how = COLLECT_BYTES | (fresh ? 0 : COLLECT_NEW),
		.collect_ms = COLLECT_MS,
	};

	if (cell.op == OP_BASH) {
		cell.source = call->code.data;
		cell.source_len = call->code.len;
	} else if (shell) {
		cell.plain = true;
		cell.words = words;
		cell.word_count = sizeof(words) / sizeof(words[0]);
	} else {
		api_inputs_add(&in, program, call->code.data, call->code.len)
		    ->mtime = -1;
	}
	w->out = (struct mcp_output)MCP_OUTPUT_INIT;
	w->err = (struct mcp_output)MCP_OUTPUT_INIT;
	w->run = (struct api_run){ .front = &mcp_front,
		.arg = w,
		.app = w->x->app,
		.req = w->x->req,
		.request = &cell,
		.lease_wait_ms = WAIT_MS,
		.c = { .tick = mcp_work_tick, .tick_ms = TICK_MS } };
	if (w->x->m.progress != NULL)
		mcp_report_progress(w->x, 0, cell.wall_ms, &w->out.kept);
	if (mcp_open_inputs(w, &in, program)) {
		cell.inputs = in.items;
		cell.input_count = in.count;
		if (fresh) {
			api_run(&w->run, call->python.data);
			api_run_answer(&w->run);
		} else {
			run_in_session(w);
		}
	}
	api_inputs_release(&in);
	buf_release(&w->out.kept);
	buf_release(&w->err.kept);
	return w->result;
}

/* ---- a call ---- */

static json_t *
end_session(struct mcp_work *w)
{
	return session_end(w->x->app, w->call.session.data) ?
	    mcp_pack_closed() :
	    explain_no_session(w);
}

static json_t *
use_tool(struct mcp_work *w)
{
	static const struct {
		enum gate_use use; /* of a run, in a session */
		json_t *(*perform)(struct mcp_work *w);
	} tools[] = {
		[MCP_RUN_PYTHON] = { GATE_COMMAND, mcp_run_code },
		[MCP_RUN_SHELL] = { GATE_COMMAND, mcp_run_code },
		[MCP_CREATE_SESSION] = { GATE_SESSION, create_session },
		[MCP_CLOSE_SESSION] = { GATE_GLANCE, end_session },
		[MCP_LIST_FILES] = { GATE_COMMAND, run_file_tool },
		[MCP_READ_FILE] = { GATE_COMMAND, run_file_tool },
		[MCP_WRITE_FILE] = { GATE_COMMAND, run_file_tool },
	};
	enum gate_use use = tools[w->call.tool].use;
	json_t *refusal;

	if (use == GATE_COMMAND && w->call.session.data == NULL)
		use = GATE_CELL;
	refusal = claim_use(w->x, use);
	return refusal != NULL ? refusal : tools[w->call.tool].perform(w);
}

json_t *
mcp_call_tool(struct mcp_exchange *x)
{
	auto_buf struct buf why = BUF_INIT(4096);
	auto_free struct mcp_work *w = xcalloc(1, sizeof(*w));

	w->x = x;
	if (!mcp_call_parse(&w->call, &x->m, x->app->mcp_list, &why))
		return why.len == 0 ? NULL : mcp_trouble("%s", buf_str(&why));
	x->passed_on = w->call.session.data != NULL &&
	    nodes_pass_on(x->app, x->req, w->call.session.data, NODES_TO_MCP);
	return x->passed_on ? NULL : use_tool(w);
}
