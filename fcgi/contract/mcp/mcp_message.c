/* SPDX-License-Identifier: MIT */
#include "contract/mcp/mcp_message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "contract/json.h"

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"

/* The server as clients see it: Inline in its version. */
#define SERVER \
	"{\"name\":\"inline\",\"title\":\"Inline\",\"version\":" \
	"\"" INLINE_VERSION "\"}"

#define CAPABILITIES "{\"tools\":{},\"resources\":{}}"

/* Clients may keep the answers of `server/discover`, which never change while
 * the server runs. */
#define STABLE_MS 300000

/* Instructions for the model. */
#define INSTRUCTIONS \
	"Runs Python and shell commands in a container without network. " \
	"Without a session each call begins with an empty folder, and what " \
	"it leaves there comes back as files. For work in several steps make " \
	"a session: its files stay, variables do not. Plots that are " \
	"shown, or saved as PNG, come back as pictures. Print what you want " \
	"to see."

/* The newest first; the first is modern. */
static const char *const versions[] = { MCP_VERSION_MODERN, MCP_VERSION_LEGACY,
	"2025-06-18", "2025-03-26" };
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))
#define WITHOUT_LINKS "2025-03-26"

/* Methods that are served; name: the member of params that Mcp-Name repeats. */
static const struct {
	const char *method;
	bool legacy;
	bool modern;
	const char *name;
} methods[] = {
	[MCP_INITIALIZE] = { "initialize", true, false, NULL },
	[MCP_PING] = { "ping", true, false, NULL },
	[MCP_DISCOVER] = { "server/discover", false, true, NULL },
	[MCP_TOOLS_LIST] = { "tools/list", true, true, NULL },
	[MCP_TOOLS_CALL] = { "tools/call", true, true, "name" },
	[MCP_RESOURCES_LIST] = { "resources/list", true, true, NULL },
	[MCP_TEMPLATES_LIST] = { "resources/templates/list", true, true, NULL },
	[MCP_RESOURCES_READ] = { "resources/read", true, true, "uri" },
};

/* ---- faults ---- */

bool
mcp_refuse(struct mcp_fault *fault, const struct mcp_message *m, int status,
    enum mcp_code code, const char *fmt, ...)
{
	va_list ap;

	*fault = (struct mcp_fault){ .code = code,
		.status = m != NULL && m->era == MCP_LEGACY ? 200 : status };
	va_start(ap, fmt);
	(void)vsnprintf(fault->text, sizeof(fault->text), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- the envelope ---- */

static bool
mcp_parse_body(struct mcp_message *m, const char *body, size_t len,
    struct mcp_fault *fault)
{
	struct jtree_error error;

	if (!jtree_parse(&m->doc, body, len, &error))
		return mcp_refuse(fault, NULL, 400, MCP_NOT_JSON,
		    "Parse error: %s", error.text);
	if (json_is_array(m->doc.root))
		return mcp_refuse(fault, NULL, 400, MCP_NO_REQUEST,
		    "Invalid request: one message for each POST, no array");
	if (!json_is_object(m->doc.root))
		return mcp_refuse(fault, NULL, 400, MCP_NO_REQUEST,
		    "Invalid request: the body is no object");
	return true;
}

/* Is it a text or an integer of so many bytes? */
static bool
can_repeat(const json_t *value)
{
	return json_is_integer(value) ||
	    (json_is_string(value) &&
		json_string_length(value) <= MCP_ECHO_MAX);
}

/* The id first: whatever else is wrong is told to it. */
static bool
read_id(struct mcp_message *m, struct mcp_fault *fault)
{
	const json_t *id = json_object_get(m->doc.root, "id");

	m->kind = id == NULL ? MCP_NOTIFICATION : MCP_REQUEST;
	if (id == NULL)
		return true;
	if (!can_repeat(id))
		return mcp_refuse(fault, NULL, 400, MCP_NO_REQUEST,
		    "Invalid request: id must be a string of at most %d bytes "
		    "or an integer",
		    MCP_ECHO_MAX);
	m->id = id;
	return true;
}

/* Take the parameters, and what _meta says. */
static bool
read_params(struct mcp_message *m, const json_t **meta, struct mcp_fault *fault)
{
	const json_t *params = json_object_get(m->doc.root, "params");
	const json_t *token;

	if (params == NULL)
		return true;
	if (!json_is_object(params))
		return mcp_refuse(fault, NULL, 400, MCP_BAD_PARAMS,
		    "Invalid params: params must be an object");
	m->params = params;
	*meta = json_object_get(params, "_meta");
	token = json_object_get(*meta, "progressToken");
	if (json_is_string(token) && !can_repeat(token))
		return mcp_refuse(fault, NULL, 400, MCP_BAD_PARAMS,
		    "Invalid params: progressToken must have at most %d bytes",
		    MCP_ECHO_MAX);
	if (can_repeat(token))
		m->progress = token;
	return true;
}

/* ---- eras ---- */

static bool
is_version(const char *version, size_t first)
{
	for (size_t i = first; i < VERSIONS; i++)
		if (strcmp(versions[i], version) == 0)
			return true;
	return false;
}

static bool
check_legacy(struct mcp_message *m, const struct mcp_head *head,
    struct mcp_fault *fault)
{
	m->links = head->version != NULL &&
	    strcmp(head->version, WITHOUT_LINKS) != 0;
	/* It is agreed on only by what `initialize` is answered with. */
	if (m->method == MCP_INITIALIZE || head->version == NULL ||
	    is_version(head->version, 1))
		return true;
	return mcp_refuse(fault, NULL, 400, MCP_NO_REQUEST,
	    "Bad request: unsupported protocol version '%.40s'", head->version);
}

/* A header that repeats a text of the body: the same bytes, or in base64 what
 * a header cannot hold.  Blanks around it are the transport's. */
static bool
repeats(const char *header, const json_t *text)
{
	static const char mark[] = "=?base64?";
	auto_free char *decoded = NULL;
	size_t len;

	if (header == NULL || !json_is_string(text))
		return false;
	header += strspn(header, " \t");
	len = strlen(header);
	while (len > 0 && (header[len - 1] == ' ' || header[len - 1] == '\t'))
		len--;
	if (len >= strlen(mark) + 2 &&
	    strncmp(header, mark, strlen(mark)) == 0 &&
	    memcmp(header + len - 2, "?=", 2) == 0) {
		decoded = xmalloc(len);
		if (!base64_decode(header + strlen(mark),
			len - strlen(mark) - 2, true, decoded, &len))
			return false;
		header = decoded;
	}
	return len == json_string_length(text) &&
	    memcmp(header, json_string_value(text), len) == 0;
}

/* The name comes only with a method of which it is known where it stands. */
static bool
check_headers(const struct mcp_message *m, const struct mcp_head *head,
    struct mcp_fault *fault)
{
	const char *member = m->method < MCP_METHODS ? methods[m->method].name :
						       NULL;
	const char *wrong = NULL;

	if (!repeats(head->method, json_object_get(m->doc.root, "method")))
		wrong = "Mcp-Method";
	else if (member != NULL &&
	    json_is_string(json_object_get(m->params, member)) &&
	    !repeats(head->name, json_object_get(m->params, member)))
		wrong = "Mcp-Name";
	if (wrong == NULL)
		return true;
	return mcp_refuse(fault, NULL, 400, MCP_BAD_HEADER,
	    "Header mismatch: the header %s must be what the body says", wrong);
}

static bool
check_modern(struct mcp_message *m, const struct mcp_head *head,
    const json_t *meta, struct mcp_fault *fault)
{
	const json_t *version = json_object_get(meta,
	    MCP_META "protocolVersion");

	m->links = true;
	if (!json_is_string(version) || !can_repeat(version))
		return mcp_refuse(fault, NULL, 400, MCP_BAD_PARAMS,
		    "Invalid params: _meta must have " MCP_META
		    "protocolVersion, a string");
	if (!json_is_object(json_object_get(meta,
		MCP_META "clientCapabilities")))
		return mcp_refuse(fault, NULL, 400, MCP_BAD_PARAMS,
		    "Invalid params: _meta must have " MCP_META
		    "clientCapabilities, an object");
	if (!repeats(head->version, version))
		return mcp_refuse(fault, NULL, 400, MCP_BAD_HEADER,
		    "Header mismatch: the header MCP-Protocol-Version must be "
		    "what _meta says");
	if (!jtree_is(version, MCP_VERSION_MODERN)) {
		(void)mcp_refuse(fault, NULL, 400, MCP_BAD_VERSION,
		    "Unsupported protocol version");
		fault->asked = version;
		return false;
	}
	return check_headers(m, head, fault);
}

/* A request is modern if its body names a version, or its header the modern
 * one. */
static enum mcp_era
era_of(const struct mcp_head *head, const json_t *meta)
{
	return json_object_get(meta, MCP_META "protocolVersion") != NULL ||
		(head->version != NULL &&
		    strcmp(head->version, MCP_VERSION_MODERN) == 0) ?
	    MCP_MODERN :
	    MCP_LEGACY;
}

/* ---- a message ---- */

/* An answer to a request of ours: there are none, but who sends one means no
 * harm. */
static bool
accept_response(struct mcp_message *m, const struct mcp_head *head,
    struct mcp_fault *fault)
{
	bool answers = json_object_get(m->doc.root, "result") != NULL ||
	    json_object_get(m->doc.root, "error") != NULL;

	m->kind = MCP_NOTIFICATION;
	if (answers && era_of(head, NULL) == MCP_LEGACY)
		return true;
	return mcp_refuse(fault, NULL, 400, MCP_NO_REQUEST,
	    "Invalid request: method must be a string");
}

static bool
check_method(struct mcp_message *m, const json_t *method,
    struct mcp_fault *fault)
{
	enum mcp_method i = m->method;

	if (i < MCP_METHODS &&
	    (m->era == MCP_LEGACY ? methods[i].legacy : methods[i].modern))
		return true;
	return mcp_refuse(fault, m, 404, MCP_NO_METHOD,
	    "Method not found: %.200s", json_string_value(method));
}

bool
mcp_message_parse(struct mcp_message *m, const struct mcp_head *head,
    const char *body, size_t len, struct mcp_fault *fault)
{
	const json_t *meta = NULL;
	const json_t *method;

	*m = (struct mcp_message){ .kind = MCP_REQUEST };
	if (!fields_is_json(head->content_type))
		return mcp_refuse(fault, NULL, 415, MCP_NO_REQUEST,
		    "Unsupported media type: Content-Type must be "
		    "application/json");
	if (!mcp_parse_body(m, body, len, fault) || !read_id(m, fault))
		return false;
	if (!jtree_is(json_object_get(m->doc.root, "jsonrpc"), "2.0"))
		return mcp_refuse(fault, NULL, 400, MCP_NO_REQUEST,
		    "Invalid request: jsonrpc must be \"2.0\"");
	method = json_object_get(m->doc.root, "method");
	if (method == NULL)
		return accept_response(m, head, fault);
	if (!json_is_string(method))
		return mcp_refuse(fault, NULL, 400, MCP_NO_REQUEST,
		    "Invalid request: method must be a string");
	if (m->kind == MCP_NOTIFICATION)
		return true;
	while (m->method < MCP_METHODS &&
	    !jtree_is(method, methods[m->method].method))
		m->method++;
	if (!read_params(m, &meta, fault))
		return false;
	m->era = era_of(head, meta);
	if (!(m->era == MCP_LEGACY ? check_legacy(m, head, fault) :
				     check_modern(m, head, meta, fault)))
		return false;
	return check_method(m, method, fault);
}

void
mcp_message_release(struct mcp_message *m)
{
	jtree_release(&m->doc);
}

/* ---- versions ---- */

/* The versions that are offered, the newest first, as JSON: ["…",…]. */
static void
mcp_add_versions(struct buf *out)
{
	for (size_t i = 0; i < VERSIONS; i++)
		buf_addf(out, "%s\"%s\"", i == 0 ? "[" : ",", versions[i]);
	buf_addc(out, ']');
}

const char *
mcp_negotiate(const struct mcp_message *m)
{
	const json_t *asked = json_object_get(m->params, "protocolVersion");

	for (size_t i = 1; i < VERSIONS; i++)
		if (jtree_is(asked, versions[i]))
			return versions[i];
	return MCP_VERSION_LEGACY;
}

/* ---- parts ---- */

void
mcp_add_text(struct buf *out, const char *s, size_t len)
{
	jtext_add_string(out, s, len, JTEXT_ASCII);
}

/* The most that a byte can take as mcp_add_text() writes it. */
static size_t
json_cost(unsigned char c)
{
	if (c >= 0x80)
		return 3; /* six for the two of a character */
	if (c != '\0' && strchr("\t\n\r\"\\", c) != NULL)
		return 2;
	return c < 0x20 || c == 0x7f ? 6 : 1;
}

size_t
mcp_fit_text(const char *s, size_t len, size_t room)
{
	size_t total = 0;
	size_t n = 0;

	while (n < len && total + json_cost((unsigned char)s[n]) <= room)
		total += json_cost((unsigned char)s[n++]);
	while (n < len && n > 0 && utf8_is_tail(s[n]))
		n--;
	return n;
}

void
mcp_add_value(struct buf *out, const json_t *value)
{
	if (value == NULL)
		buf_adds(out, "null");
	else
		jtext_add(out, value, JSON_ENSURE_ASCII);
}

/* ---- results ---- */

void
mcp_begin(struct buf *out, const struct mcp_message *m, int64_t ttl_ms,
    bool shared)
{
	buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	mcp_add_value(out, m->id);
	if (m->era == MCP_LEGACY) {
		/* A first member, which the others follow. */
		buf_adds(out, ",\"result\":{\"_meta\":{}");
		return;
	}
	buf_adds(out,
	    ",\"result\":{\"resultType\":\"complete\",\"_meta\":{\"" MCP_META
	    "serverInfo\":" SERVER "}");
	if (ttl_ms != MCP_NOT_KEPT)
		buf_addf(out, ",\"ttlMs\":%" PRId64 ",\"cacheScope\":\"%s\"",
		    ttl_ms, shared ? "public" : "private");
}

void
mcp_end(struct buf *out)
{
	buf_adds(out, "}}");
}

void
mcp_add_initialize(struct buf *out, const struct mcp_message *m)
{
	mcp_begin(out, m, MCP_NOT_KEPT, true);
	buf_addf(out,
	    ",\"protocolVersion\":\"%s\",\"capabilities\":" CAPABILITIES
	    ",\"serverInfo\":" SERVER ",\"instructions\":\"" INSTRUCTIONS "\"",
	    mcp_negotiate(m));
	mcp_end(out);
}

void
mcp_add_discover(struct buf *out, const struct mcp_message *m)
{
	mcp_begin(out, m, STABLE_MS, true);
	buf_adds(out, ",\"supportedVersions\":");
	mcp_add_versions(out);
	buf_adds(out,
	    ",\"capabilities\":" CAPABILITIES
	    ",\"instructions\":\"" INSTRUCTIONS "\"");
	mcp_end(out);
}

void
mcp_add_ping(struct buf *out, const struct mcp_message *m)
{
	buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	mcp_add_value(out, m->id);
	buf_adds(out, ",\"result\":{}}");
}

void
mcp_add_error(struct buf *out, const json_t *id, const struct mcp_fault *fault)
{
	buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	mcp_add_value(out, id);
	jtext_addf(out, JTEXT_ASCII,
	    ",\"error\":{\"code\":%" PRId64 ",\"message\":\"%s\"",
	    (int64_t)fault->code, fault->text);
	if (fault->asked != NULL) {
		buf_adds(out, ",\"data\":{\"supported\":");
		mcp_add_versions(out);
		buf_adds(out, ",\"requested\":");
		mcp_add_value(out, fault->asked);
		buf_addc(out, '}');
	} else if (fault->uri != NULL) {
		buf_adds(out, ",\"data\":{\"uri\":");
		mcp_add_value(out, fault->uri);
		buf_addc(out, '}');
	}
	buf_adds(out, "}}");
}

/* ---- a stream ---- */

void
mcp_add_event(struct buf *out, const char *json, size_t len)
{
	jtext_addf(out, JTEXT_ASCII, "event: message\ndata: %.*s\n\n", (int)len,
	    json);
}

void
mcp_add_comment(struct buf *out)
{
	buf_adds(out, ": alive\n\n");
}

void
mcp_add_progress(struct buf *out, const json_t *token, int64_t ms,
    int64_t total_ms, const char *text, size_t len)
{
	buf_adds(out,
	    "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":"
	    "\"notifications/progress\",\"params\":{\"progressToken\":");
	mcp_add_value(out, token);
	buf_addf(out,
	    ",\"progress\":%" PRId64 ".%03d,\"total\":%" PRId64
	    ".%03d,\"message\":",
	    ms / 1000, (int)(ms % 1000), total_ms / 1000,
	    (int)(total_ms % 1000));
	mcp_add_text(out, text, len);
	buf_adds(out, "}}\n\n");
}
