/* SPDX-License-Identifier: MIT */
/*
 * POST /mcp: the Model Context Protocol over HTTP.  contract/mcp knows the
 * bytes; this file does the work.  It remembers nothing between two requests,
 * so a restart or a lost connection does not matter to a client.
 */
#include "api/mcp.h"

#include <stdlib.h>
#include <string.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/routes.h"
#include "api/run.h"
#include "contract/mcp/mcp_result.h"
#include "contract/mcp/mcp_tools.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"

/* Calls that may wait beside those that run, over all processes; and further
 * processes, for messages that are answered at once. */
#define WAITING 8
#define QUICK 4
/* Readers of resources may be slow.  They have at most so many of these slots,
 * so others can still run code. */
#define READERS 4
#define LISTED_MAX 100
#define BODY_MAX ((size_t)16 << 20)
#define PROGRESS_BYTES 65536
#define STREAM_TYPE "text/event-stream"
#define STREAM_HEADERS \
	"Cache-Control: no-cache\r\n" \
	"X-Accel-Buffering: no\r\n"
#define ANSWER_HEADERS "Cache-Control: no-store\r\n"
/* For an answer to be taken in; a stream's run comes on top. */
#define READER_MS 120000
/* A stream begins when the client has waited for so long, and is never silent
 * for longer than the other. */
#define PATIENCE_MS 5000
#define SILENCE_MS 10000

/* ---- limits at one time ---- */

static int64_t
shared_slots(const struct config *config)
{
	return config->api_cells + config->api_sessions + WAITING;
}

size_t
mcp_children(const struct config *config)
{
	return (size_t)shared_slots(config) + QUICK;
}

bool
mcp_claim_slot(struct mcp_exchange *x)
{
	x->slot = limits_claim_shared(x->app->limits, LIMITS_SHARED,
	    shared_slots(x->app->config));
	return x->slot >= 0;
}

/* Claim a slot of those that read resources, and one of all calls. */
static bool
claim_reader(struct mcp_exchange *x)
{
	x->reader = limits_claim_shared(x->app->limits, LIMITS_READER, READERS);
	return (x->reader >= 0 && mcp_claim_slot(x)) ||
	    mcp_refuse(&x->m, 503, MCP_INTERNAL, NULL, MCP_BUSY);
}

/* ---- the file store as resources ---- */

static json_t *
list_resources(struct mcp_exchange *x)
{
	/* The newest first, and a place for one that drops out. */
	struct filestore_entry newest[LISTED_MAX + 1];
	struct filestore_entry entry;
	size_t count = 0;
	json_t *list;
	struct err err;
	auto_dir DIR *folder = NULL;

	if (!claim_reader(x))
		return NULL;
	folder = filestore_open_folder(&x->app->store, &err);
	if (folder == NULL) {
		log_warn("list: %s", err.text);
		return NULL;
	}
	while (filestore_next(&x->app->store, folder, &entry)) {
		size_t i = count;

		for (; i > 0 && newest[i - 1].uploaded_ms < entry.uploaded_ms;
		     i--)
			newest[i] = newest[i - 1];
		newest[i] = entry;
		if (count < LISTED_MAX)
			count++;
		else
			free(newest[LISTED_MAX].name);
	}
	list = json_array();
	for (size_t i = 0; i < count; i++) {
		(void)json_array_append_new(list,
		    mcp_pack_resource(newest[i].id, newest[i].name,
			newest[i].size));
		free(newest[i].name);
	}
	return json_pack("{s:o}", "resources", list);
}

/* A resource that is not there gets an error, never an empty answer. */
static json_t *
refuse_resource(struct mcp_exchange *x, json_t *uri, const char *text)
{
	(void)mcp_refuse(&x->m, 400,
	    x->m.era == MCP_LEGACY ? MCP_NO_RESOURCE : MCP_BAD_PARAMS,
	    json_pack("{s:O}", "uri", uri), "%s", text);
	return NULL;
}

static json_t *
mcp_read_resource(struct mcp_exchange *x)
{
	json_t *uri = json_object_get(x->m.params, "uri");
	auto_free char *name = NULL;
	struct filestore_entry entry;
	struct api_inputs in = { .items = NULL };
	const struct cell_input *file;
	char own_id[FILESTORE_ID_LEN + 1] = "";
	const char *id = NULL;
	json_t *result = NULL;
	struct err err;
	auto_close int fd = -1;

	if (!json_is_string(uri) || json_string_length(uri) > MCP_URI_MAX) {
		(void)mcp_refuse(&x->m, 400, MCP_BAD_PARAMS, NULL,
		    "Invalid params: uri must be a string of at most %zu bytes",
		    MCP_URI_MAX);
		return NULL;
	}
	if (mcp_uri_id(json_string_value(uri), json_string_length(uri), &id) ==
	    FILESTORE_ID_LEN) {
		memcpy(own_id, id, FILESTORE_ID_LEN);
		fd = nodes_get_file(x->app, x->req, own_id, FILESTORE_ID_LEN,
		    &entry, &err);
	}
	if (fd < 0)
		return refuse_resource(x, uri,
		    "Resource not found: it was never there, or its time is "
		    "over");
	name = entry.name;
	if (entry.size > (int64_t)MCP_RESOURCE_MAX)
		return refuse_resource(x, uri,
		    "Resource too large: over 8 MiB; GET /v1/files/ID has it");
	if (!claim_reader(x))
		return NULL;
	file = api_inputs_add_file(&in, name, steal_fd(&fd));
	if (file != NULL)
		result = mcp_pack_contents(uri, name, file->content.data,
		    file->content.len);
	api_inputs_release(&in);
	return result;
}

/* ---- a stream ---- */

/* A stream begins, if it may. */
static void
mcp_begin_stream(struct mcp_exchange *x)
{
	if (!x->may_stream || x->req->begun)
		return;
	http_allow_slow_reader(x->req,
	    READER_MS + MCP_TIMEOUT_MAX_S * INT64_C(1000));
	http_begin(x->req, 200, STREAM_TYPE, STREAM_HEADERS);
}

/* Write a message as an event, or a sign of life if it is empty. */
static void
write_event(struct mcp_exchange *x, const struct buf *message)
{
	const char *before = message->len == 0 ? ": alive" :
						 "event: message\ndata: ";

	http_write(x->req, before, strlen(before));
	http_write(x->req, buf_str(message), message->len);
	http_write(x->req, "\n\n", 2);
	(void)http_flush(x->req);
	x->sent_ms = clock_monotonic_ms();
}

void
mcp_report_progress(struct mcp_exchange *x, int64_t ms, int64_t total_ms,
    const struct buf *text)
{
	auto_buf struct buf message = BUF_INIT(PROGRESS_BYTES);
	int64_t now_ms = clock_monotonic_ms();

	if (now_ms - x->began_ms >= PATIENCE_MS || x->m.progress != NULL)
		mcp_begin_stream(x);
	if (!x->req->begun)
		return;
	if (x->m.progress != NULL && ms >= 0)
		mcp_add_progress(&message, &x->m, ms, total_ms, text);
	else if (now_ms - x->sent_ms < SILENCE_MS && x->sent_ms != x->began_ms)
		return;
	write_event(x, &message);
}

/* ---- the answer ---- */

/* Answer with the result, which is released, or with the message's error. */
static void
send_answer(struct mcp_exchange *x, json_t *result)
{
	auto_buf struct buf body = BUF_INIT(MCP_ANSWER_MAX);
	int status = 200;

	if (result == NULL && x->m.error == NULL)
		(void)mcp_refuse(&x->m, 200, MCP_INTERNAL, NULL,
		    "Internal error");
	if (result == NULL)
		status = x->m.status;
	mcp_add_answer(&body, &x->m, result);
	if (body.overflow) {
		send_answer(x, NULL);
		return;
	}
	if (x->must_stream && status == 200)
		mcp_begin_stream(x);
	if (x->req->begun)
		write_event(x, &body);
	else
		http_answer(x->req, status, "application/json", ANSWER_HEADERS,
		    buf_str(&body), body.len);
}

/* ---- the request ---- */

static json_t *
perform(struct mcp_exchange *x)
{
	if (x->m.method == MCP_TOOLS_CALL)
		return mcp_call_tool(x);
	if (x->m.method == MCP_RESOURCES_LIST)
		return list_resources(x);
	if (x->m.method == MCP_RESOURCES_READ)
		return mcp_read_resource(x);
	return mcp_pack_constant(&x->m, x->app->mcp_list);
}

/* Read the message.  False: its sender is gone; else it may be an error. */
static bool
mcp_read_message(struct mcp_exchange *x)
{
	const struct mcp_head head = {
		.content_type = http_param(x->req, "CONTENT_TYPE"),
		.version = http_param(x->req, "HTTP_MCP_PROTOCOL_VERSION"),
		.method = http_param(x->req, "HTTP_MCP_METHOD"),
		.name = http_param(x->req, "HTTP_MCP_NAME"),
	};
	auto_buf struct buf body = BUF_INIT(BODY_MAX);

	if (x->req->length > (int64_t)BODY_MAX)
		return !mcp_refuse(&x->m, 413, MCP_NO_REQUEST, NULL,
		    "The body is too long");
	if (!http_read_all(x->req, &body))
		return false;
	(void)mcp_message_parse(&x->m, &head, buf_str(&body), body.len);
	return true;
}

static void
mcp_answer_message(struct mcp_exchange *x)
{
	json_t *result = NULL;

	if (!mcp_read_message(x))
		return;
	if (x->m.error == NULL && x->m.kind == MCP_NOTIFICATION) {
		http_answer(x->req, 202, NULL, NULL, "", 0);
		return;
	}
	if (x->m.error == NULL)
		result = perform(x);
	if (result != NULL || x->m.error != NULL ||
	    !(x->passed_on || http_client_gone(x->req)))
		send_answer(x, result);
}

static bool
accepts(const struct http_request *req, const char *type)
{
	const char *accept = http_param(req, "HTTP_ACCEPT");

	return accept != NULL && strcasestr(accept, type) != NULL;
}

void
api_mcp(struct api_app *app, struct http_request *req)
{
	struct mcp_exchange x = {
		.app = app,
		.req = req,
		.slot = -1,
		.reader = -1,
		.may_stream = accepts(req, STREAM_TYPE),
		.began_ms = clock_monotonic_ms(),
	};

	x.sent_ms = x.began_ms;
	x.must_stream = x.may_stream && !accepts(req, "application/json") &&
	    !accepts(req, "application/*") && !accepts(req, "*/*");
	http_allow_slow_reader(req, READER_MS);
	mcp_answer_message(&x);
	mcp_message_release(&x.m);
	cleanup_close(&x.reader);
	cleanup_close(&x.slot);
}
