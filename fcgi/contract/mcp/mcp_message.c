/* SPDX-License-Identifier: MIT */
#include "contract/mcp/mcp_message.h"

#include <stdarg.h>
#include <string.h>

#include "contract/json.h"

#include "base/basics.h"

#define META "io.modelcontextprotocol/"
#define TEXT_BYTES 2048 /* of an error */
#define FLAGS \
	(JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY | \
	    JSON_REAL_PRECISION(15))

/* The newest first; the first is modern. */
static const char *const versions[] = { MCP_VERSION_MODERN, MCP_VERSION_LEGACY,
	"2025-06-18", "2025-03-26" };
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))
#define WITHOUT_LINKS "2025-03-26"

/* Time that clients may keep an answer which never changes while the server
 * runs; and a file of the store, which never changes, but goes at its time. */
#define STABLE_MS 300000
#define CONTENTS_MS 60000

#define BOTH (MCP_LEGACY | MCP_MODERN)

/* Methods that are served. */
static const struct {
	const char *name;
	int eras;	   /* enum mcp_era, added up */
	const char *named; /* the member of params that Mcp-Name repeats */
	bool paged;	   /* it takes a cursor */
	const char *scope; /* may keep the answer; NULL: it is not said */
	int keep_ms;
} methods[] = {
	[MCP_INITIALIZE] = { .name = "initialize", .eras = MCP_LEGACY },
	[MCP_PING] = { .name = "ping", .eras = MCP_LEGACY },
	[MCP_DISCOVER] = { "server/discover", MCP_MODERN, NULL, false, "public",
	    STABLE_MS },
	[MCP_TOOLS_LIST] = { "tools/list", BOTH, NULL, true, "public",
	    STABLE_MS },
	[MCP_TOOLS_CALL] = { "tools/call", BOTH, "name", false, NULL, 0 },
	[MCP_RESOURCES_LIST] = { "resources/list", BOTH, NULL, true, "private",
	    0 },
	[MCP_TEMPLATES_LIST] = { "resources/templates/list", BOTH, NULL, true,
	    "public", STABLE_MS },
	[MCP_RESOURCES_READ] = { "resources/read", BOTH, "uri", false,
	    "private", CONTENTS_MS },
	[MCP_METHODS] = { .name = NULL },
};

static json_t *
pack_versions(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < VERSIONS; i++)
		(void)json_array_append_new(list, json_string(versions[i]));
	return list;
}

bool
mcp_refuse(struct mcp_message *m, int status, enum mcp_code code, json_t *data,
    const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(TEXT_BYTES);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	json_decref(m->error);
	m->error = json_pack("{s:i, s:o, s:o*}", "code", (int)code, "message",
	    jtext_pack(buf_str(&text), text.len), "data", data);
	m->status = m->era == MCP_LEGACY ? 200 : status;
	return false;
}

/* ---- repetitions ---- */

/* Is it a text or an integer of so many bytes? */
static bool
can_repeat(const json_t *value)
{
	return json_is_integer(value) ||
	    (json_is_string(value) &&
		json_string_length(value) <= MCP_ECHO_MAX);
}

/* A header that repeats a text of the body: the same bytes, or in base64 what
 * a header cannot hold.  Blanks around it are the transport's. */
static bool
repeats(const char *header, const json_t *text)
{
	static const char mark[] = "=?base64?";
	const size_t around = strlen(mark) + strlen("?=");
	auto_free char *copy = NULL;
	size_t len;

	if (header == NULL || !json_is_string(text))
		return false;
	header += strspn(header, " \t");
	len = strlen(header);
	while (len > 0 && strchr(" \t", header[len - 1]) != NULL)
		len--;
	copy = xstrndup(header, len);
	if (len >= around && strncmp(copy, mark, strlen(mark)) == 0 &&
	    strcmp(copy + len - 2, "?=") == 0 &&
	    !base64_decode(header + strlen(mark), len - around, true, copy,
		&len))
		return false;
	return len == json_string_length(text) &&
	    memcmp(copy, json_string_value(text), len) == 0;
}

/* ---- eras ---- */

/* The legacy version of that name; NULL: there is none. */
static const char *
find_legacy(const char *version)
{
	for (size_t i = 1; version != NULL && i < VERSIONS; i++)
		if (strcmp(versions[i], version) == 0)
			return versions[i];
	return NULL;
}

static bool
check_legacy(struct mcp_message *m, const struct mcp_head *head)
{
	m->links = head->version != NULL &&
	    strcmp(head->version, WITHOUT_LINKS) != 0;
	/* It is agreed on only by what `initialize` is answered with. */
	return m->method == MCP_INITIALIZE || head->version == NULL ||
	    find_legacy(head->version) != NULL ||
	    mcp_refuse(m, 400, MCP_NO_REQUEST, NULL,
		"Bad request: unsupported protocol version '%.40s'",
		head->version);
}

static bool
check_modern(struct mcp_message *m, const struct mcp_head *head,
    const json_t *meta)
{
	json_t *version = json_object_get(meta, META "protocolVersion");
	const json_t *name = json_object_get(m->params,
	    methods[m->method].named);
	bool offered = jtree_is(version, MCP_VERSION_MODERN);
	const char *wrong = NULL;

	m->links = true;
	if (!json_is_string(version) || !can_repeat(version) ||
	    !json_is_object(json_object_get(meta, META "clientCapabilities")))
		return mcp_refuse(m, 400, MCP_BAD_PARAMS, NULL,
		    "Invalid params: _meta must have " META
		    "protocolVersion, a string, and " META
		    "clientCapabilities, an object");
	if (!repeats(head->version, version))
		wrong = "MCP-Protocol-Version";
	else if (offered &&
	    !repeats(head->method, json_object_get(m->doc.root, "method")))
		wrong = "Mcp-Method";
	else if (offered && json_is_string(name) && !repeats(head->name, name))
		wrong = "Mcp-Name";
	if (wrong != NULL)
		return mcp_refuse(m, 400, MCP_BAD_HEADER, NULL,
		    "Header mismatch: the header %s must be what the body says",
		    wrong);
	return offered ||
	    mcp_refuse(m, 400, MCP_BAD_VERSION,
		json_pack("{s:o, s:O}", "supported", pack_versions(),
		    "requested", version),
		"Unsupported protocol version");
}

/* A request is modern if its body names a version, or its header the modern
 * one. */
static bool
is_modern(const struct mcp_head *head, const json_t *meta)
{
	return json_object_get(meta, META "protocolVersion") != NULL ||
	    (head->version != NULL &&
		strcmp(head->version, MCP_VERSION_MODERN) == 0);
}

/* ---- a message ---- */

/* The id comes first: every later error is an answer to it. */
static bool
read_envelope(struct mcp_message *m, const char *body, size_t len)
{
	struct jtree_error error;
	const json_t *id;

	if (!jtree_parse(&m->doc, body, len, &error))
		return mcp_refuse(m, 400, MCP_NOT_JSON, NULL, "Parse error: %s",
		    error.text);
	if (!json_is_object(m->doc.root))
		return mcp_refuse(m, 400, MCP_NO_REQUEST, NULL,
		    "Invalid request: the body must be one object");
	id = json_object_get(m->doc.root, "id");
	m->kind = id == NULL ? MCP_NOTIFICATION : MCP_REQUEST;
	if (id != NULL && !can_repeat(id))
		return mcp_refuse(m, 400, MCP_NO_REQUEST, NULL,
		    "Invalid request: id must be a string of at most %d bytes "
		    "or an integer",
		    MCP_ECHO_MAX);
	m->id = id;
	return jtree_is(json_object_get(m->doc.root, "jsonrpc"), "2.0") ||
	    mcp_refuse(m, 400, MCP_NO_REQUEST, NULL,
		"Invalid request: jsonrpc must be \"2.0\"");
}

static bool
mcp_read_request(struct mcp_message *m, const struct mcp_head *head,
    const json_t *method)
{
	const json_t *meta;
	const json_t *token;
	enum mcp_era era;

	m->params = json_object_get(m->doc.root, "params");
	meta = json_object_get(m->params, "_meta");
	token = json_object_get(meta, "progressToken");
	if ((m->params != NULL && !json_is_object(m->params)) ||
	    (json_is_string(token) && !can_repeat(token)))
		return mcp_refuse(m, 400, MCP_BAD_PARAMS, NULL,
		    "Invalid params: params must be an object, its "
		    "progressToken of at most %d bytes",
		    MCP_ECHO_MAX);
	m->progress = can_repeat(token) ? token : NULL;
	while (m->method < MCP_METHODS &&
	    !jtree_is(method, methods[m->method].name))
		m->method++;
	era = is_modern(head, meta) ? MCP_MODERN : MCP_LEGACY;
	if (!(era == MCP_MODERN ? check_modern(m, head, meta) :
				  check_legacy(m, head)))
		return false;
	m->era = era;
	if ((methods[m->method].eras & (int)era) == 0)
		return mcp_refuse(m, 404, MCP_NO_METHOD, NULL,
		    "Method not found: %.200s", json_string_value(method));
	/* There is one page: no cursor was ever given out. */
	return !methods[m->method].paged ||
	    jtree_is_absent(json_object_get(m->params, "cursor")) ||
	    mcp_refuse(m, 400, MCP_BAD_PARAMS, NULL,
		"Invalid params: unknown cursor");
}

bool
mcp_message_parse(struct mcp_message *m, const struct mcp_head *head,
    const char *body, size_t len)
{
	const json_t *method;
	bool responds;

	*m = (struct mcp_message){ .kind = MCP_REQUEST };
	if (!fields_is_json(head->content_type))
		return mcp_refuse(m, 415, MCP_NO_REQUEST, NULL,
		    "Unsupported media type: Content-Type must be "
		    "application/json");
	if (!read_envelope(m, body, len))
		return false;
	method = json_object_get(m->doc.root, "method");
	/* No request of ours is to be answered, but such an answer does no
	 * harm. */
	responds = method == NULL && !is_modern(head, NULL) &&
	    (json_object_get(m->doc.root, "result") != NULL ||
		json_object_get(m->doc.root, "error") != NULL);
	if (!json_is_string(method) && !responds)
		return mcp_refuse(m, 400, MCP_NO_REQUEST, NULL,
		    "Invalid request: method must be a string");
	if (responds)
		m->kind = MCP_NOTIFICATION;
	return m->kind == MCP_NOTIFICATION || mcp_read_request(m, head, method);
}

void
mcp_message_release(struct mcp_message *m)
{
	json_decref(m->error);
	m->error = NULL;
	jtree_release(&m->doc);
}

/* ---- results ---- */

/* The server as clients see it. */
static json_t *
pack_server(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "inline", "title", "Inline",
	    "version", INLINE_VERSION);
}

/* The two first methods of a client are answered almost alike. */
json_t *
mcp_pack_constant(const struct mcp_message *m, const json_t *list)
{
	enum mcp_method method = m->method == MCP_DISCOVER ? MCP_INITIALIZE :
							     m->method;
	json_t *result = json_copy(json_object_get(list, methods[method].name));
	const char *asked = find_legacy(jtree_text(json_object_get(m->params,
	    "protocolVersion")));

	if (m->method == MCP_DISCOVER)
		(void)json_object_set_new(result, "supportedVersions",
		    pack_versions());
	if (m->method == MCP_INITIALIZE)
		(void)json_object_update_new(result,
		    json_pack("{s:s, s:o}", "protocolVersion",
			asked != NULL ? asked : MCP_VERSION_LEGACY,
			"serverInfo", pack_server()));
	return result;
}

/* ---- messages to the client ---- */

size_t
mcp_json_size(const json_t *value)
{
	return json_dumpb(value, NULL, 0, FLAGS);
}

/* Append a message, which is released. */
static void
add_message(struct buf *out, json_t *message)
{
	jtext_add(out, message, FLAGS);
	json_decref(message);
}

/* A modern result says that it is one, and how long it may be kept. */
static json_t *
pack_modern(const struct mcp_message *m)
{
	const char *scope = methods[m->method].scope;

	return json_pack("{s:s, s:{s:o}, s:s*, s:o*}", "resultType", "complete",
	    "_meta", META "serverInfo", pack_server(), "cacheScope", scope,
	    "ttlMs",
	    scope == NULL ? NULL : json_integer(methods[m->method].keep_ms));
}

void
mcp_add_answer(struct buf *out, const struct mcp_message *m, json_t *result)
{
	if (result != NULL && m->era == MCP_MODERN)
		(void)json_object_update_new(result, pack_modern(m));
	add_message(out,
	    json_pack("{s:s, s:O?, s:o*, s:O*}", "jsonrpc", "2.0", "id", m->id,
		"result", result, "error", result == NULL ? m->error : NULL));
}

void
mcp_add_progress(struct buf *out, const struct mcp_message *m, int64_t ms,
    int64_t total_ms, const struct buf *text)
{
	add_message(out,
	    json_pack("{s:s, s:s, s:{s:O, s:f, s:f, s:o}}", "jsonrpc", "2.0",
		"method", "notifications/progress", "params", "progressToken",
		m->progress, "progress", (double)ms / 1000, "total",
		(double)total_ms / 1000, "message",
		jtext_pack(buf_str(text), text->len)));
}
