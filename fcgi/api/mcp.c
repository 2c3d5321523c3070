/* SPDX-License-Identifier: MIT */
/*
 * POST /mcp: the Model Context Protocol over HTTP.  contract/mcp knows the
 * bytes; this file does the work.  It remembers nothing between two requests,
 * so a restart or a lost connection does not matter to a client.
 *
 */
#include "api/mcp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/app.h"
#include "api/routes.h"
#include "api/run.h"
#include "contract/media.h"
#include "contract/run_files.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"

#define FILE_TOOL_MS 10000
#define SESSION_LOST \
	"A fault of Inline's: the session is lost. Make another one with " \
	"create_session."
#define LISTED_MAX 100
#define BODY_MAX ((size_t)16 << 20)
#define FRAME_MAX_BYTES 65536
#define STREAM_TYPE "text/event-stream"
#define STREAM_HEADERS \
	"Cache-Control: no-cache\r\n" \
	"X-Accel-Buffering: no\r\n"
#define ANSWER_HEADERS "Cache-Control: no-store\r\n"
/* For an answer to be taken in; a stream's run comes on top. */
#define READER_MS 120000
/* A stream begins when somebody has waited for so long, and is never silent for
 * longer than the other. */
#define PATIENCE_MS 5000
#define SILENCE_MS 10000
#define STABLE_MS 300000

/* ---- the answer ---- */

/* A stream begins, if it may. */
static void
mcp_stream(struct mcp_exchange *x)
{
	if (!x->may_stream || x->req->begun)
		return;
	http_allow_slow_reader(x->req,
	    READER_MS + MCP_TIMEOUT_MAX_S * INT64_C(1000));
	http_begin(x->req, 200, STREAM_TYPE, STREAM_HEADERS);
}

static void
mcp_send_frame(struct mcp_exchange *x, const struct buf *frame)
{
	http_write(x->req, buf_str(frame), frame->len);
	(void)http_flush(x->req);
	x->told_ms = clock_monotonic_ms();
}

void
mcp_tell(struct mcp_exchange *x, int64_t ms, int64_t total_ms,
    const struct buf *text)
{
	auto_buf struct buf frame = BUF_INIT(FRAME_MAX_BYTES);
	int64_t now_ms = clock_monotonic_ms();

	if (now_ms - x->began_ms >= PATIENCE_MS || x->m.progress != NULL)
		mcp_stream(x);
	if (!x->req->begun)
		return;
	if (x->m.progress != NULL && ms >= 0)
		mcp_add_progress(&frame, x->m.progress, ms, total_ms,
		    buf_str(text), text->len);
	else if (now_ms - x->told_ms >= SILENCE_MS || x->told_ms == x->began_ms)
		mcp_add_comment(&frame);
	if (frame.len > 0)
		mcp_send_frame(x, &frame);
}

static void
send_status(struct mcp_exchange *x, int status)
{
	auto_buf struct buf frame = BUF_INIT(MCP_ANSWER_MAX + 64);

	if (x->must_stream && status == 200)
		mcp_stream(x);
	if (x->req->begun) {
		mcp_add_event(&frame, buf_str(&x->body), x->body.len);
		mcp_send_frame(x, &frame);
		return;
	}
	http_answer(x->req, status, "application/json", ANSWER_HEADERS,
	    buf_str(&x->body), x->body.len);
}

void
mcp_send(struct mcp_exchange *x)
{
	if (x->body.overflow)
		mcp_failed(x);
	else
		send_status(x, 200);
}

void
mcp_fault(struct mcp_exchange *x, const struct mcp_fault *fault)
{
	buf_reset(&x->body);
	mcp_add_error(&x->body, x->m.id, fault);
	send_status(x, fault->status);
}

void
mcp_failed(struct mcp_exchange *x)
{
	struct mcp_fault fault;

	(void)mcp_refuse(&fault, &x->m, 200, MCP_INTERNAL, "Internal error");
	mcp_fault(x, &fault);
}

void
mcp_trouble(struct mcp_exchange *x, const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(8192);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	buf_reset(&x->body);
	mcp_add_trouble(&x->body, &x->m, buf_str(&text));
	mcp_send(x);
}

void
mcp_busy(struct mcp_exchange *x)
{
	static const char text[] =
	    "Inline is busy: nothing was run. Try again in a few seconds.";
	struct mcp_fault fault;

	if (x->m.method == MCP_TOOLS_CALL) {
		mcp_trouble(x, "%s", text);
		return;
	}
	(void)mcp_refuse(&fault, &x->m, 503, MCP_INTERNAL, "%s", text);
	mcp_fault(x, &fault);
}

/* ---- limits at one time ---- */

static int64_t
shared_slots(const struct config *config)
{
	return config->api_cells + config->api_sessions + MCP_WAITING;
}

size_t
mcp_children(const struct config *config)
{
	return (size_t)shared_slots(config) + MCP_QUICK;
}

bool
mcp_enter(struct mcp_exchange *x, enum gate_use use)
{
	x->slot = limits_claim_shared(x->app->limits, LIMITS_SHARED,
	    shared_slots(x->app->config));
	if (x->slot < 0) {
		mcp_busy(x);
		return false;
	}
	if (use == GATE_GLANCE || gate_claim(x->app, x->req, use))
		return true;
	mcp_trouble(x,
	    use != GATE_COMMAND ?
		"All cells of this token are in use: nothing was run. Wait "
		"for another call to end, or close a session." :
		"This token has as many commands running as it may. Try again "
		"when one has ended.");
	return false;
}

/* As mcp_enter(), for a resource or the list of resources. */
static bool
mcp_enter_reader(struct mcp_exchange *x)
{
	x->reader = limits_claim_shared(x->app->limits, LIMITS_READER,
	    MCP_READERS);
	if (x->reader >= 0)
		return mcp_enter(x, GATE_GLANCE);
	mcp_busy(x);
	return false;
}

/* ---- the file store as resources: a list of the newest ones ---- */

struct listed {
	struct filestore_entry items[LISTED_MAX]; /* the newest first */
	size_t count;
};

/* Takes the entry's name. */
static void
keep_newest(struct listed *list, const struct filestore_entry *entry)
{
	size_t i = list->count;

	while (i > 0 && list->items[i - 1].uploaded_ms < entry->uploaded_ms)
		i--;
	if (i == LISTED_MAX) {
		free(entry->name);
		return;
	}
	if (list->count == LISTED_MAX)
		free(list->items[--list->count].name);
	memmove(&list->items[i + 1], &list->items[i],
	    (list->count - i) * sizeof(list->items[0]));
	list->items[i] = *entry;
	list->count++;
}

static void
mcp_list_resources(struct mcp_exchange *x)
{
	struct filestore *store = &x->app->store;
	auto_free struct listed *list = xcalloc(1, sizeof(*list));
	struct filestore_entry entry;
	struct err err;
	auto_dir DIR *folder = NULL;

	if (!mcp_enter_reader(x))
		return;
	folder = filestore_open_folder(store, &err);
	if (folder == NULL) {
		log_warn("list: %s", err.text);
		mcp_failed(x);
		return;
	}
	while (filestore_next(store, folder, &entry))
		keep_newest(list, &entry);
	mcp_begin(&x->body, &x->m, 0, false);
	buf_adds(&x->body, ",\"resources\":[");
	for (size_t i = 0; i < list->count; i++) {
		buf_adds(&x->body, i == 0 ? "" : ",");
		mcp_add_resource(&x->body, list->items[i].id,
		    list->items[i].name, list->items[i].size);
		free(list->items[i].name);
	}
	buf_addc(&x->body, ']');
	mcp_end(&x->body);
	mcp_send(x);
}

/* ---- one of them ---- */

/* A resource that is not there gets an error, never an empty answer. */
static void
mcp_refuse_resource(struct mcp_exchange *x, const json_t *uri, const char *text)
{
	struct mcp_fault fault;

	(void)mcp_refuse(&fault, &x->m, 400,
	    x->m.era == MCP_LEGACY ? MCP_NO_RESOURCE : MCP_BAD_PARAMS, "%s",
	    text);
	fault.uri = uri;
	mcp_fault(x, &fault);
}

static void
answer_content(struct mcp_exchange *x, const json_t *uri, const char *name,
    int fd)
{
	struct api_inputs in = { .items = NULL };
	const struct cell_input *file = api_inputs_add_file(&in, name, fd);

	if (file == NULL) {
		mcp_failed(x);
	} else {
		mcp_add_contents(&x->body, &x->m, uri, name, file->content.data,
		    file->content.len);
		mcp_send(x);
	}
	api_inputs_release(&in);
}

static void
mcp_read_resource(struct mcp_exchange *x)
{
	const json_t *uri = json_object_get(x->m.params, "uri");
	struct filestore_entry entry;
	struct mcp_fault fault;
	char own_id[FILESTORE_ID_LEN + 1] = "";
	const char *id = NULL;
	size_t len = 0;
	struct err err;
	auto_close int fd = -1;

	if (!json_is_string(uri) || json_string_length(uri) > MCP_URI_MAX) {
		(void)mcp_refuse(&fault, &x->m, 400, MCP_BAD_PARAMS,
		    "Invalid params: uri must be a string of at most %zu bytes",
		    MCP_URI_MAX);
		mcp_fault(x, &fault);
		return;
	}
	len = mcp_uri_id(json_string_value(uri), json_string_length(uri), &id);
	if (len == FILESTORE_ID_LEN) {
		memcpy(own_id, id, len);
		fd = nodes_get_file(x->app, x->req, own_id, len, &entry, &err);
	}
	if (fd < 0) {
		mcp_refuse_resource(x, uri,
		    "Resource not found: it was never there, or its time is "
		    "over");
		return;
	}
	if (entry.size > (int64_t)MCP_RESOURCE_MAX)
		mcp_refuse_resource(x, uri,
		    "Resource too large: over 8 MiB; GET /v1/files/ID has it");
	else if (mcp_enter_reader(x))
		answer_content(x, uri, entry.name, steal_fd(&fd));
	free(entry.name);
}

/* ---- sessions and their files: tools ---- */

/* A request of a file tool's.  False: there is nothing to tell, which was
 * answered. */
static bool
ask_for_files(struct mcp_exchange *x, struct lease *b,
    const struct cell_request *request,
    void (*event)(void *arg, const struct cell_event *event), void *arg,
    struct cell_result *result)
{
	if (!mcp_ask(x, b, request, event, arg, result))
		mcp_trouble(x, SESSION_LOST);
	else if (result->reason == REASON_ERROR)
		mcp_explain(x, result);
	else
		return true;
	return false;
}

static void
mcp_create_session(struct mcp_exchange *x)
{
	char id[SESSION_ID_SIZE];
	struct lease lease;
	struct err err;

	session_make_id(x->app, id);
	if (session_lease(x->app, x->req, id, x->call.python.data,
		x->call.ttl_s * 1000, 0, &lease, &err) != REFUSAL_NONE) {
		log_warn("no cell: %s", err.text);
		if (!http_client_gone(x->req))
			mcp_trouble(x,
			    "There is no room for another session just now. "
			    "Close one that you do not need, or try again in "
			    "%" PRId64 " s.",
			    lease.next_ms / 1000 + 1);
		return;
	}
	if (http_client_gone(x->req)) {
		lease_close(&lease);
		return;
	}
	lease_park(&lease);
	mcp_add_session(&x->body, &x->m, id,
	    (clock_wall_ms() + x->call.ttl_s * 1000) / 1000);
	mcp_send(x);
}

static void
end(struct mcp_exchange *x)
{
	if (session_end(x->app, x->call.session.data)) {
		mcp_add_closed(&x->body, &x->m);
		mcp_send(x);
	} else {
		mcp_no_session(x);
	}
}

struct listing {
	struct mcp_entry items[MCP_ENTRIES_MAX];
	size_t count;
};

static void
mcp_list_entry(void *arg, const struct cell_event *event)
{
	struct listing *list = arg;

	if (event->kind == CELL_ENTRY && list->count < MCP_ENTRIES_MAX)
		list->items[list->count++] = (struct mcp_entry){
			xstrdup(event->name), event->entry_kind, event->size
		};
}

static bool
mcp_list_files(struct mcp_exchange *x, struct lease *b, const char *path)
{
	const struct cell_request request = { .op = OP_LIST,
		.folder = "/workspace",
		.path = path,
		.count = MCP_ENTRIES_MAX,
		.wall_ms = FILE_TOOL_MS };
	struct listing *list = xcalloc(1, sizeof(*list));
	struct cell_result result;
	bool good = ask_for_files(x, b, &request, mcp_list_entry, list,
	    &result);

	if (good)
		mcp_add_listing(&x->body, &x->m, path, list->items, list->count,
		    result.total > (int64_t)list->count);
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].name);
	free(list);
	return good;
}

/* A part of a file: the cell sends its beginning, of which some is dropped. */
struct part {
	struct buf data;
	int64_t skip;
};

static void
mcp_read_part(void *arg, const struct cell_event *event)
{
	struct part *part = arg;
	size_t skip;

	if (event->kind != CELL_BYTES)
		return;
	skip = part->skip < (int64_t)event->len ? (size_t)part->skip :
						  event->len;
	part->skip -= (int64_t)skip;
	buf_add(&part->data, event->data + skip, event->len - skip);
}

static bool
mcp_read_file(struct mcp_exchange *x, struct lease *b, const char *path)
{
	const struct mcp_call *call = &x->call;
	const struct cell_request request = { .op = OP_READ,
		.folder = "/workspace",
		.path = path,
		.max_bytes = call->offset + call->limit,
		.cut = true,
		.wall_ms = FILE_TOOL_MS };
	struct part part = { BUF_INIT(MCP_READ_MAX), call->offset };
	struct cell_result result;
	bool good = ask_for_files(x, b, &request, mcp_read_part, &part,
	    &result);

	if (good)
		mcp_add_read(&x->body, &x->m, call->path.data,
		    buf_str(&part.data), part.data.len, call->offset,
		    result.total);
	buf_release(&part.data);
	return good;
}

static bool
mcp_write_file(struct mcp_exchange *x, struct lease *b, const char *path)
{
	const struct mcp_call *call = &x->call;
	const struct cell_request request = { .op = OP_WRITE,
		.folder = "/workspace",
		.path = path,
		.content = call->content.data,
		.content_len = call->content.len,
		.wall_ms = FILE_TOOL_MS };
	struct cell_result result;

	if (!ask_for_files(x, b, &request, NULL, NULL, &result))
		return false;
	mcp_add_written(&x->body, &x->m, path, call->content.len);
	return true;
}

/* Find the path of a file whose name is no UTF-8, if the client has sent the
 * text that it was given for it.  NULL: the call's own path is meant.  To be
 * freed. */
static char *
find_real_path(struct mcp_exchange *x, struct lease *b)
{
	auto_buf struct buf path = BUF_INIT(LIMIT_PATH + 1);
	struct cell_request request = { .op = OP_READ,
		.folder = "/workspace",
		.max_bytes = 1,
		.cut = true,
		.wall_ms = FILE_TOOL_MS };
	struct cell_result result;

	if (x->call.path_decoded || !path_text_read(&path, x->call.path.data))
		return NULL;
	request.path = buf_str(&path);
	if (!mcp_ask(x, b, &request, NULL, NULL, &result) ||
	    (result.reason == REASON_ERROR &&
		result.error != ERROR_IS_DIRECTORY))
		return NULL;
	return buf_steal(&path, NULL);
}

/* The session is parked before the answer, which may have a slow reader. */
static void
file_tool(struct mcp_exchange *x)
{
	struct lease b;
	auto_free char *real = NULL;
	const char *path;
	bool good = false;

	if (!mcp_resume(x, &b))
		return;
	if (x->call.path.data != NULL)
		real = find_real_path(x, &b);
	path = real != NULL ? real : x->call.path.data;
	if (b.lost)
		mcp_trouble(x, SESSION_LOST);
	else if (x->call.tool == MCP_LIST_FILES)
		good = mcp_list_files(x, &b, path);
	else if (x->call.tool == MCP_READ_FILE)
		good = mcp_read_file(x, &b, path);
	else
		good = mcp_write_file(x, &b, path);
	lease_park(&b);
	if (good)
		mcp_send(x);
}

static void
mcp_session_tool(struct mcp_exchange *x)
{
	enum mcp_tool tool = x->call.tool;

	if (!mcp_enter(x,
		tool == MCP_CREATE_SESSION    ? GATE_SESSION :
		    tool == MCP_CLOSE_SESSION ? GATE_GLANCE :
						GATE_COMMAND))
		return;
	if (tool == MCP_CREATE_SESSION)
		mcp_create_session(x);
	else if (tool == MCP_CLOSE_SESSION)
		end(x);
	else
		file_tool(x);
}

/* ---- methods ---- */

static void
call_tool(struct mcp_exchange *x)
{
	auto_buf struct buf why = BUF_INIT(4096);
	struct mcp_fault fault;

	switch (mcp_call_parse(&x->call, &x->m, x->app->tools, &fault, &why)) {
	case MCP_CALL_FAULT:
		mcp_fault(x, &fault);
		return;
	case MCP_CALL_MENDABLE:
		mcp_trouble(x, "%s", buf_str(&why));
		return;
	case MCP_CALL_FINE:
		break;
	}
	if (x->call.session.data != NULL &&
	    nodes_pass_on(x->app, x->req, x->call.session.data, NODES_TO_MCP))
		return;
	if (x->call.tool == MCP_RUN_PYTHON || x->call.tool == MCP_RUN_SHELL)
		mcp_run_tool(x);
	else
		mcp_session_tool(x);
}

/* There is one page: no cursor was ever given out. */
static bool
has_cursor(struct mcp_exchange *x)
{
	const json_t *cursor = json_object_get(x->m.params, "cursor");
	struct mcp_fault fault;

	if (jtree_is_absent(cursor))
		return false;
	(void)mcp_refuse(&fault, &x->m, 400, MCP_BAD_PARAMS,
	    "Invalid params: unknown cursor");
	mcp_fault(x, &fault);
	return true;
}

static void
list_tools(struct mcp_exchange *x)
{
	mcp_begin(&x->body, &x->m, STABLE_MS, true);
	buf_adds(&x->body, ",\"tools\":");
	mcp_add_tools(&x->body, x->app->tools);
	mcp_end(&x->body);
	mcp_send(x);
}

static void
list_templates(struct mcp_exchange *x)
{
	mcp_begin(&x->body, &x->m, STABLE_MS, true);
	buf_adds(&x->body,
	    ",\"resourceTemplates\":[{\"uriTemplate\":\"" MCP_URI_TEMPLATE
	    "\",\"name\":\"file\",\"title\":\"A file of the store\","
	    "\"description\":\"What a run has left; resource links name "
	    "it.\"}]");
	mcp_end(&x->body);
	mcp_send(x);
}

static void
mcp_perform(struct mcp_exchange *x)
{
	switch (x->m.method) {
	case MCP_INITIALIZE:
		mcp_add_initialize(&x->body, &x->m);
		mcp_send(x);
		break;
	case MCP_PING:
		mcp_add_ping(&x->body, &x->m);
		mcp_send(x);
		break;
	case MCP_DISCOVER:
		mcp_add_discover(&x->body, &x->m);
		mcp_send(x);
		break;
	case MCP_TOOLS_LIST:
		if (!has_cursor(x))
			list_tools(x);
		break;
	case MCP_TOOLS_CALL:
		call_tool(x);
		break;
	case MCP_RESOURCES_LIST:
		if (!has_cursor(x))
			mcp_list_resources(x);
		break;
	case MCP_TEMPLATES_LIST:
		if (!has_cursor(x))
			list_templates(x);
		break;
	case MCP_RESOURCES_READ:
		mcp_read_resource(x);
		break;
	case MCP_METHODS:
		break;
	}
}

/* ---- the request ---- */

static bool
accepts(const struct http_request *req, const char *type)
{
	const char *accept = http_param(req, "HTTP_ACCEPT");

	return accept != NULL && strcasestr(accept, type) != NULL;
}

/* False: it was answered, or its sender is gone. */
static bool
mcp_read_body(struct mcp_exchange *x, struct buf *body)
{
	struct mcp_fault fault;

	if (x->req->length <= (int64_t)BODY_MAX)
		return http_read_all(x->req, body);
	(void)mcp_refuse(&fault, NULL, 413, MCP_NO_REQUEST,
	    "The body is too long");
	mcp_fault(x, &fault);
	return false;
}

static void
mcp_answer(struct mcp_exchange *x)
{
	const struct mcp_head head = {
		.content_type = http_param(x->req, "CONTENT_TYPE"),
		.version = http_param(x->req, "HTTP_MCP_PROTOCOL_VERSION"),
		.method = http_param(x->req, "HTTP_MCP_METHOD"),
		.name = http_param(x->req, "HTTP_MCP_NAME"),
	};
	auto_buf struct buf body = BUF_INIT(BODY_MAX);
	struct mcp_fault fault;
	bool good;

	if (!mcp_read_body(x, &body))
		return;
	good = mcp_message_parse(&x->m, &head, buf_str(&body), body.len,
	    &fault);
	buf_release(&body);
	if (!good)
		mcp_fault(x, &fault);
	else if (x->m.kind == MCP_NOTIFICATION)
		http_answer(x->req, 202, NULL, NULL, "", 0);
	else
		mcp_perform(x);
}

void
api_mcp(struct api_app *app, struct http_request *req)
{
	struct mcp_exchange x = {
		.app = app,
		.req = req,
		.body = BUF_INIT(MCP_ANSWER_MAX),
		.slot = -1,
		.reader = -1,
		.may_stream = accepts(req, STREAM_TYPE),
		.began_ms = clock_monotonic_ms(),
	};

	x.told_ms = x.began_ms;
	x.must_stream = x.may_stream && !accepts(req, "application/json") &&
	    !accepts(req, "application/*") && !accepts(req, "*/*");
	http_allow_slow_reader(req, READER_MS);
	mcp_answer(&x);
	mcp_message_release(&x.m);
	buf_release(&x.body);
	cleanup_close(&x.reader);
	cleanup_close(&x.slot);
}
