/* SPDX-License-Identifier: MIT */
#include "mcp_message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../../pytext/pyjson.h"
#include "../base64.h"

#include "../../../sandbox/base/buf.h"
#include "../../../sandbox/base/cleanup.h"
#include "../../../sandbox/base/text.h"
#include "../../../sandbox/base/utf8.h"

/* The newest first; the first is modern. */
static const char *const versions[] = { MCP_VERSION_MODERN, MCP_VERSION_LEGACY,
	"2025-06-18", "2025-03-26" };
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))
#define WITHOUT_LINKS "2025-03-26"

/* What is understood; name: the member of params that Mcp-Name repeats. */
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

static bool __attribute__((format(printf, 4, 0)))
refuse_v(struct mcp_fault *fault, int status, enum mcp_code code,
    const char *fmt, va_list ap)
{
	*fault = (struct mcp_fault){ .status = status, .code = code };
	(void)vsnprintf(fault->text, sizeof(fault->text), fmt, ap);
	return false;
}

bool
mcp_refuse(struct mcp_fault *fault, int status, enum mcp_code code,
    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)refuse_v(fault, status, code, fmt, ap);
	va_end(ap);
	return false;
}

bool
mcp_refuse_request(const struct mcp_message *m, struct mcp_fault *fault,
    int status, enum mcp_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)refuse_v(fault, m->era == MCP_LEGACY ? 200 : status, code, fmt,
	    ap);
	va_end(ap);
	return false;
}

/* ---- the envelope ---- */

const struct pyvalue *
mcp_member(const struct pyvalue *object, const char *name)
{
	return object == NULL ? NULL : pyvalue_get(object, name);
}

bool
mcp_is_text(const struct pyvalue *value, const char *text)
{
	return value != NULL && value->type == PYVALUE_STRING &&
	    value->count == strlen(text) &&
	    memcmp(value->u.text, text, value->count) == 0;
}

static bool
is_type(const struct pyvalue *value, enum pyvalue_type type)
{
	return value != NULL && value->type == type;
}

/* application/json, with any parameters. */
static bool
is_json(const char *type)
{
	size_t len;

	if (type == NULL)
		return false;
	type += strspn(type, " \t");
	len = strcspn(type, "; \t");
	return text_is(type, len, "application/json");
}

static bool
parse_body(struct mcp_message *m, const char *body, size_t len,
    struct mcp_fault *fault)
{
	struct pyjson_error error;

	if (!utf8_valid(body, len))
		return mcp_refuse(fault, 400, MCP_NOT_JSON,
		    "Parse error: the body is not UTF-8");
	if (!pyjson_parse(&m->doc, body, len, PYJSON_STRICT, &error)) {
		memset(&m->doc, 0, sizeof(m->doc));
		return mcp_refuse(fault, 400, MCP_NOT_JSON,
		    "Parse error: %s at character %zu", error.text,
		    error.position);
	}
	if (m->doc.root.type == PYVALUE_ARRAY)
		return mcp_refuse(fault, 400, MCP_NO_REQUEST,
		    "Invalid request: one message for each POST, no array");
	if (m->doc.root.type != PYVALUE_OBJECT)
		return mcp_refuse(fault, 400, MCP_NO_REQUEST,
		    "Invalid request: the body is no object");
	return true;
}

/* A text or an integer, whose digits the parser has counted. */
static bool
can_repeat(const struct pyvalue *value)
{
	return value->type == PYVALUE_INT || value->type == PYVALUE_BIG ||
	    (value->type == PYVALUE_STRING && value->count <= MCP_ECHO_MAX);
}

/* The id first: whatever else is wrong is told to it. */
static bool
take_id(struct mcp_message *m, struct mcp_fault *fault)
{
	const struct pyvalue *id = mcp_member(&m->doc.root, "id");

	m->kind = id == NULL ? MCP_NOTIFICATION : MCP_REQUEST;
	if (id == NULL)
		return true;
	if (!can_repeat(id))
		return mcp_refuse(fault, 400, MCP_NO_REQUEST,
		    "Invalid request: id must be a string of at most %d bytes "
		    "or an integer",
		    MCP_ECHO_MAX);
	m->id = id;
	return true;
}

/* What is said of the request beside its parameters. */
static bool
take_params(struct mcp_message *m, const struct pyvalue **meta,
    struct mcp_fault *fault)
{
	const struct pyvalue *params = mcp_member(&m->doc.root, "params");
	const struct pyvalue *token;

	if (params == NULL)
		return true;
	if (params->type != PYVALUE_OBJECT)
		return mcp_refuse(fault, 400, MCP_BAD_PARAMS,
		    "Invalid params: params must be an object");
	m->params = params;
	*meta = mcp_member(params, "_meta");
	token = mcp_member(*meta, "progressToken");
	if (token != NULL && token->type == PYVALUE_STRING &&
	    !can_repeat(token))
		return mcp_refuse(fault, 400, MCP_BAD_PARAMS,
		    "Invalid params: progressToken must have at most %d bytes",
		    MCP_ECHO_MAX);
	if (token != NULL && can_repeat(token))
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
	return mcp_refuse(fault, 400, MCP_NO_REQUEST,
	    "Bad request: unsupported protocol version '%.40s'", head->version);
}

/* A header that repeats a text of the body: the same bytes, or in base64 what
 * a header cannot hold.  Blanks around it are the transport's. */
static bool
repeats(const char *header, const struct pyvalue *text)
{
	static const char mark[] = "=?base64?";
	auto_free char *decoded = NULL;
	size_t len;

	if (header == NULL || !is_type(text, PYVALUE_STRING))
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
			len - strlen(mark) - 2, decoded, &len))
			return false;
		header = decoded;
	}
	return len == text->count && memcmp(header, text->u.text, len) == 0;
}

/* The name comes only with a method of which it is known where it stands. */
static bool
check_headers(const struct mcp_message *m, const struct mcp_head *head,
    struct mcp_fault *fault)
{
	const char *member = m->method < MCP_METHODS ? methods[m->method].name :
						       NULL;
	const char *wrong = NULL;

	if (!repeats(head->method, mcp_member(&m->doc.root, "method")))
		wrong = "Mcp-Method";
	else if (member != NULL &&
	    is_type(mcp_member(m->params, member), PYVALUE_STRING) &&
	    !repeats(head->name, mcp_member(m->params, member)))
		wrong = "Mcp-Name";
	if (wrong == NULL)
		return true;
	return mcp_refuse(fault, 400, MCP_BAD_HEADER,
	    "Header mismatch: the header %s must be what the body says", wrong);
}

static bool
check_modern(struct mcp_message *m, const struct mcp_head *head,
    const struct pyvalue *meta, struct mcp_fault *fault)
{
	const struct pyvalue *version = mcp_member(meta,
	    MCP_META "protocolVersion");

	m->links = true;
	if (!is_type(version, PYVALUE_STRING) || !can_repeat(version))
		return mcp_refuse(fault, 400, MCP_BAD_PARAMS,
		    "Invalid params: _meta must have " MCP_META
		    "protocolVersion, a string");
	if (!is_type(mcp_member(meta, MCP_META "clientCapabilities"),
		PYVALUE_OBJECT))
		return mcp_refuse(fault, 400, MCP_BAD_PARAMS,
		    "Invalid params: _meta must have " MCP_META
		    "clientCapabilities, an object");
	if (!repeats(head->version, version))
		return mcp_refuse(fault, 400, MCP_BAD_HEADER,
		    "Header mismatch: the header MCP-Protocol-Version must be "
		    "what _meta says");
	if (!mcp_is_text(version, MCP_VERSION_MODERN)) {
		(void)mcp_refuse(fault, 400, MCP_BAD_VERSION,
		    "Unsupported protocol version");
		fault->asked = version;
		return false;
	}
	return check_headers(m, head, fault);
}

/* Whoever says a version in the body, or a modern one in the header. */
static enum mcp_era
era_of(const struct mcp_head *head, const struct pyvalue *meta)
{
	return mcp_member(meta, MCP_META "protocolVersion") != NULL ||
		(head->version != NULL &&
		    strcmp(head->version, MCP_VERSION_MODERN) == 0) ?
	    MCP_MODERN :
	    MCP_LEGACY;
}

/* ---- a message ---- */

/* An answer to a request of ours: there are none, but who sends one means no
 * harm. */
static bool
take_response(struct mcp_message *m, const struct mcp_head *head,
    struct mcp_fault *fault)
{
	bool answers = mcp_member(&m->doc.root, "result") != NULL ||
	    mcp_member(&m->doc.root, "error") != NULL;

	m->kind = MCP_NOTIFICATION;
	if (answers && era_of(head, NULL) == MCP_LEGACY)
		return true;
	return mcp_refuse(fault, 400, MCP_NO_REQUEST,
	    "Invalid request: method must be a string");
}

static bool
take_method(struct mcp_message *m, const struct pyvalue *method,
    struct mcp_fault *fault)
{
	enum mcp_method i = m->method;

	if (i < MCP_METHODS &&
	    (m->era == MCP_LEGACY ? methods[i].legacy : methods[i].modern))
		return true;
	return mcp_refuse_request(m, fault, 404, MCP_NO_METHOD,
	    "Method not found: %.200s", method->u.text);
}

bool
mcp_message_parse(struct mcp_message *m, const struct mcp_head *head,
    const char *body, size_t len, struct mcp_fault *fault)
{
	const struct pyvalue *meta = NULL;
	const struct pyvalue *method;

	*m = (struct mcp_message){ .kind = MCP_REQUEST };
	if (!is_json(head->content_type))
		return mcp_refuse(fault, 415, MCP_NO_REQUEST,
		    "Unsupported media type: Content-Type must be "
		    "application/json");
	if (!parse_body(m, body, len, fault) || !take_id(m, fault))
		return false;
	if (!mcp_is_text(mcp_member(&m->doc.root, "jsonrpc"), "2.0"))
		return mcp_refuse(fault, 400, MCP_NO_REQUEST,
		    "Invalid request: jsonrpc must be \"2.0\"");
	method = mcp_member(&m->doc.root, "method");
	if (method == NULL)
		return take_response(m, head, fault);
	if (method->type != PYVALUE_STRING)
		return mcp_refuse(fault, 400, MCP_NO_REQUEST,
		    "Invalid request: method must be a string");
	if (m->kind == MCP_NOTIFICATION)
		return true;
	while (m->method < MCP_METHODS &&
	    !mcp_is_text(method, methods[m->method].method))
		m->method++;
	if (!take_params(m, &meta, fault))
		return false;
	m->era = era_of(head, meta);
	if (!(m->era == MCP_LEGACY ? check_legacy(m, head, fault) :
				     check_modern(m, head, meta, fault)))
		return false;
	return take_method(m, method, fault);
}

void
mcp_message_release(struct mcp_message *m)
{
	pyjson_release(&m->doc);
}

/* ---- versions ---- */

void
mcp_add_versions(struct buf *out)
{
	for (size_t i = 0; i < VERSIONS; i++)
		buf_addf(out, "%s\"%s\"", i == 0 ? "[" : ",", versions[i]);
	buf_addc(out, ']');
}

const char *
mcp_negotiate(const struct mcp_message *m)
{
	const struct pyvalue *asked = mcp_member(m->params, "protocolVersion");

	for (size_t i = 1; i < VERSIONS; i++)
		if (mcp_is_text(asked, versions[i]))
			return versions[i];
	return MCP_VERSION_LEGACY;
}
