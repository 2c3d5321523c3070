/* SPDX-License-Identifier: MIT */
#include "mcp_answer.h"

#include <inttypes.h>
#include <string.h>

#include "../../pytext/pydump.h"
#include "mcp_message.h"

#include "../../../sandbox/base/buf.h"

/* What the server is: who serves it is in the version. */
#define SERVER \
	"{\"name\":\"inline\",\"title\":\"Inline\",\"version\":" \
	"\"" INLINE_VERSION "\"}"

#define CAPABILITIES "{\"tools\":{},\"resources\":{}}"

/* Nothing of it changes while the server runs. */
#define STABLE_MS 300000

/* For the model. */
#define INSTRUCTIONS \
	"Runs Python and shell commands in a container without network. " \
	"Without a session each call begins with an empty folder, and what " \
	"it leaves there comes back as files. For work in several steps make " \
	"a session: its files stay, variables do not. Plots that are " \
	"shown, or saved as PNG, come back as pictures. Print what you want " \
	"to see."

/* ---- parts ---- */

void
mcp_add_text(struct buf *out, const char *s, size_t len)
{
	pydump_add_string(out, s, len, PYDUMP_ASCII);
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
	while (n < len && n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	return n;
}

void
mcp_add_value(struct buf *out, const struct pyvalue *value)
{
	if (value->type == PYVALUE_INT)
		buf_addf(out, "%" PRId64, value->u.integer);
	else if (value->type == PYVALUE_BIG)
		buf_add(out, value->u.text, value->count);
	else if (value->type == PYVALUE_STRING)
		mcp_add_text(out, value->u.text, value->count);
	else
		buf_adds(out, "null");
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
mcp_add_error(struct buf *out, const struct pyvalue *id,
    const struct mcp_fault *fault)
{
	buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (id != NULL)
		mcp_add_value(out, id);
	else
		buf_adds(out, "null");
	buf_addf(out, ",\"error\":{\"code\":%d,\"message\":", fault->code);
	mcp_add_text(out, fault->text, strlen(fault->text));
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
	buf_adds(out, "event: message\ndata: ");
	buf_add(out, json, len);
	buf_adds(out, "\n\n");
}

void
mcp_add_comment(struct buf *out)
{
	buf_adds(out, ": alive\n\n");
}

void
mcp_add_progress(struct buf *out, const struct pyvalue *token, int64_t ms,
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
