/* SPDX-License-Identifier: MIT */
/*
 * The tools that make and end sessions, and those for their files.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "api/app.h"
#include "api/mcp.h"
#include "api/run.h"
#include "contract/stage.h"
#include "server/http.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#define LOOK_MS 10000
#define SESSION_LOST \
	"A fault of Inline's: the session is lost. Make another one with " \
	"create_session."

/* ---- its cell, for one call ---- */

static void
no_session(struct mcp_exchange *x)
{
	mcp_trouble(x,
	    "There is no session '%.60s': it has ended, or never was. Make "
	    "another one with create_session; its folder is empty.",
	    x->call.session.data);
}

bool
mcp_borrow(struct mcp_exchange *x, struct session_borrowed *b)
{
	struct err err;

	if (session_holder_borrow(x->app, x->call.session.data, http_fd(x->req),
		MCP_TURN_MS, b, &err) == 0)
		return true;
	if (err.code != ERR_TIMEOUT)
		no_session(x);
	else if (!http_client_gone(x->req))
		mcp_trouble(x,
		    "The session is busy with another call. Try again when "
		    "that has ended.");
	return false;
}

bool
mcp_ask(struct mcp_exchange *x, struct session_borrowed *b,
    const struct cell_request *request,
    void (*event)(void *arg, const struct cell_event *event), void *arg,
    struct cell_result *result)
{
	struct api_run run = { .app = x->app,
		.req = x->req,
		.request = request,
		.c = { .event = event, .arg = arg } };
	bool good = api_run_in(&run, b);

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

/* A request of a file tool's.  False: there is nothing to tell, which was
 * answered. */
static bool
ask_for_files(struct mcp_exchange *x, struct session_borrowed *b,
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

/* ---- create and close ---- */

static void
create(struct mcp_exchange *x)
{
	int64_t ttl_ms = x->call.ttl_s * 1000;
	char id[SESSION_ID_SIZE];
	struct lease lease;
	int64_t next_ms;
	struct err err;

	if (session_cell_lease(x->app, x->req, x->call.python.data, ttl_ms,
		&lease, &next_ms, &err) != REFUSAL_NONE) {
		log_warn("no cell: %s", err.text);
		if (!http_client_gone(x->req))
			mcp_trouble(x,
			    "There is no room for another session just now. "
			    "Close one that you do not need, or try again in "
			    "%" PRId64 " s.",
			    next_ms / 1000 + 1);
		return;
	}
	if (http_client_gone(x->req)) {
		lease_close(&lease);
		return;
	}
	if (session_holder_start(x->app, &lease, ttl_ms, id, &err) != 0) {
		log_err("session: %s", err.text);
		mcp_failed(x);
		return;
	}
	mcp_add_session(&x->body, &x->m, id, (clock_wall_ms() + ttl_ms) / 1000);
	mcp_send(x);
}

static void
end(struct mcp_exchange *x)
{
	if (session_holder_end(x->app, x->call.session.data)) {
		mcp_add_closed(&x->body, &x->m);
		mcp_send(x);
	} else {
		no_session(x);
	}
}

/* ---- files ---- */

struct listing {
	struct mcp_entry items[MCP_ENTRIES_MAX];
	size_t count;
};

static void
take_entry(void *arg, const struct cell_event *event)
{
	struct listing *list = arg;

	if (event->kind == CELL_ENTRY && list->count < MCP_ENTRIES_MAX)
		list->items[list->count++] = (struct mcp_entry){
			xstrdup(event->name), event->entry_kind, event->size
		};
}

static bool
list_files(struct mcp_exchange *x, struct session_borrowed *b, const char *path)
{
	const struct cell_request request = { .op = OP_LIST,
		.folder = "/workspace",
		.path = path,
		.count = MCP_ENTRIES_MAX,
		.wall_ms = LOOK_MS };
	struct listing *list = xcalloc(1, sizeof(*list));
	struct cell_result result;
	bool good = ask_for_files(x, b, &request, take_entry, list, &result);

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
take_part(void *arg, const struct cell_event *event)
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
read_file(struct mcp_exchange *x, struct session_borrowed *b, const char *path)
{
	const struct mcp_call *call = &x->call;
	const struct cell_request request = { .op = OP_READ,
		.folder = "/workspace",
		.path = path,
		.max_bytes = call->offset + call->limit,
		.cut = true,
		.wall_ms = LOOK_MS };
	struct part part = { BUF_INIT(MCP_READ_MAX), call->offset };
	struct cell_result result;
	bool good = ask_for_files(x, b, &request, take_part, &part, &result);

	if (good)
		mcp_add_read(&x->body, &x->m, call->path.data,
		    buf_str(&part.data), part.data.len, call->offset,
		    result.total);
	buf_release(&part.data);
	return good;
}

static bool
write_file(struct mcp_exchange *x, struct session_borrowed *b, const char *path)
{
	const struct mcp_call *call = &x->call;
	const struct cell_request request = { .op = OP_WRITE,
		.folder = "/workspace",
		.path = path,
		.content = call->content.data,
		.content_len = call->content.len,
		.wall_ms = LOOK_MS };
	struct cell_result result;

	if (!ask_for_files(x, b, &request, NULL, NULL, &result))
		return false;
	mcp_add_written(&x->body, &x->m, path, call->content.len);
	return true;
}

/* Of a file whose name is no UTF-8 the client has been told another one, and
 * sends it back.  What the session has by the name that is meant; NULL: the
 * call's own path.  To be freed. */
static char *
find_real_path(struct mcp_exchange *x, struct session_borrowed *b)
{
	auto_buf struct buf path = BUF_INIT(LIMIT_PATH + 1);
	struct cell_request request = { .op = OP_READ,
		.folder = "/workspace",
		.max_bytes = 1,
		.cut = true,
		.wall_ms = LOOK_MS };
	struct cell_result result;

	if (x->call.path.decoded || !path_text_read(&path, x->call.path.data))
		return NULL;
	request.path = buf_str(&path);
	if (!mcp_ask(x, b, &request, NULL, NULL, &result) ||
	    (result.reason == REASON_ERROR &&
		result.error != ERROR_IS_DIRECTORY))
		return NULL;
	return buf_steal(&path, NULL);
}

/* Who is slow to read the answer does not have the session meanwhile. */
static void
file_tool(struct mcp_exchange *x)
{
	struct session_borrowed b;
	auto_free char *real = NULL;
	const char *path;
	bool good = false;

	if (!mcp_borrow(x, &b))
		return;
	if (x->call.path.data != NULL)
		real = find_real_path(x, &b);
	path = real != NULL ? real : x->call.path.data;
	if (b.lost)
		mcp_trouble(x, SESSION_LOST);
	else if (x->call.tool == MCP_LIST_FILES)
		good = list_files(x, &b, path);
	else if (x->call.tool == MCP_READ_FILE)
		good = read_file(x, &b, path);
	else
		good = write_file(x, &b, path);
	session_holder_return(&b);
	if (good)
		mcp_send(x);
}

void
mcp_session_tool(struct mcp_exchange *x)
{
	enum mcp_tool tool = x->call.tool;

	if (!mcp_enter(x,
		tool == MCP_CREATE_SESSION    ? GATE_SESSION :
		    tool == MCP_CLOSE_SESSION ? GATE_GLANCE :
						GATE_COMMAND))
		return;
	if (tool == MCP_CREATE_SESSION)
		create(x);
	else if (tool == MCP_CLOSE_SESSION)
		end(x);
	else
		file_tool(x);
}
