/* SPDX-License-Identifier: MIT */
/* Messages of the Model Context Protocol: eras, headers, what is refused. */
#include "contract/mcp/mcp_message.h"
#include "contract/mcp/mcp_tools.h"

#include "base/basics.h"
#include "tap.h"

#define META \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" \
	"\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}"

static const char json[] = "application/json";
static struct buf text = BUF_INIT(65536);

/* "status code id message", or "era method" of what is taken. */
static const char *
look(const struct mcp_head *head, const char *body)
{
	struct mcp_message m;

	buf_reset(&text);
	if (!mcp_message_parse(&m, head, body, strlen(body))) {
		buf_addf(&text, "%d ", m.status);
		mcp_add_answer(&text, &m, NULL);
	} else if (m.kind == MCP_NOTIFICATION) {
		buf_adds(&text, "nothing to answer");
	} else {
		buf_addf(&text, "%s %d%s%s",
		    m.era == MCP_LEGACY ? "legacy" : "modern", (int)m.method,
		    m.progress != NULL ? " progress" : "",
		    m.links ? " links" : "");
	}
	mcp_message_release(&m);
	return buf_str(&text);
}

static void
refused(const struct mcp_head *head, const char *body, int status, int code,
    const char *id, const char *name)
{
	char want[80];
	const char *got = look(head, body);

	(void)snprintf(want, sizeof(want),
	    "%d {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,", status,
	    id, code);
	if (strncmp(got, want, strlen(want)) != 0)
		note("got %s", got);
	ok(strncmp(got, want, strlen(want)) == 0, name);
}

static void
test_envelope(void)
{
	const struct mcp_head head = { .content_type = json };
	const struct mcp_head other = { .content_type = "text/plain" };
	const struct mcp_head none = { .content_type = NULL };
	const struct mcp_head charset = {
		.content_type = " Application/JSON; charset=utf-8"
	};
	static const char ping[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

	is_str(look(&head, ping), "legacy 1", "a ping");
	is_str(look(&charset, ping), "legacy 1", "its type has parameters");
	refused(&other, ping, 415, -32600, "null", "another type");
	refused(&none, ping, 415, -32600, "null", "no type");
	refused(&head, "", 400, -32700, "null", "no body");
	refused(&head, "{\"jsonrpc\":", 400, -32700, "null", "half of one");
	refused(&head, "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}", 400, -32700,
	    "null", "no UTF-8");
	refused(&head,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
	    "\"x\":NaN}",
	    400, -32700, "null", "NaN is no JSON");
	refused(&head, "{\"jsonrpc\":\"2.0\",\"id\":Infinity}", 400, -32700,
	    "null", "nor is Infinity");
	refused(&head, "[-Infinity]", 400, -32700, "null", "nor -Infinity");
	refused(&head, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
	    400, -32600, "null", "an array");
	refused(&head, "7", 400, -32600, "null", "a number");
	refused(&head, "{\"id\":5,\"method\":\"ping\"}", 400, -32600, "5",
	    "no version of JSON-RPC: told to the id");
	refused(&head, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", 400,
	    -32600, "5", "a method that is no text");
	refused(&head, "{\"jsonrpc\":\"2.0\",\"id\":5}", 400, -32600, "5",
	    "no method");
	refused(&head,
	    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":[]}",
	    400, -32602, "5", "params that are no object");
}

static void
test_ids(void)
{
	const struct mcp_head head = { .content_type = json };
	static const char *const wrong[] = { "null", "1.5", "true", "[]", "{}",
		"1e3" };
	char body[128];

	for (size_t i = 0; i < 6; i++) {
		(void)snprintf(body, sizeof(body),
		    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}",
		    wrong[i]);
		refused(&head, body, 400, -32600, "null", wrong[i]);
	}
	refused(&head,
	    "{\"jsonrpc\":\"2.0\",\"id\":123456789012345678901234567890,"
	    "\"method\":\"x\"}",
	    400, -32700, "null", "a long number");
	refused(&head,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"\xe2\x80\xa8\\\"\",\"method\":"
	    "\"x\"}",
	    200, -32601, "\"\\u2028\\\"\"", "a text, in ASCII");
}

/* An id that is sent back is bounded: otherwise no answer would hold it. */
static void
test_long(void)
{
	const struct mcp_head head = { .content_type = json };
	struct mcp_head modern = { .content_type = json };
	auto_buf struct buf longest = BUF_INIT(2 * MCP_ECHO_MAX);
	auto_buf struct buf body = BUF_INIT(4 * MCP_ECHO_MAX);
	static const char *const around[][2] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"", "\",\"method\":\"ping\"}" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
		  "\"params\":{\"_meta\":{\"progressToken\":\"",
		    "\"}}}" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
		  "\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
		  "protocolVersion\":\"",
		    "\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}" },
	};
	static const char *const taken[] = {
		"legacy 1", "legacy 1 progress",
		"400 {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022"
	};
	static const char *const refusals[] = {
		("400 {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
		 "-32600"),
		"400 {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602",
		"400 {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602",
	};

	for (size_t more = 0; more <= 1; more++) {
		while (longest.len < MCP_ECHO_MAX + more)
			buf_addc(&longest, 'a');
		modern.version = buf_str(&longest);
		for (size_t i = 0; i < 3; i++) {
			const char *want = more ? refusals[i] : taken[i];

			buf_reset(&body);
			buf_addf(&body, "%s%s%s", around[i][0],
			    buf_str(&longest), around[i][1]);
			ok(strncmp(look(i == 2 ? &modern : &head,
				       buf_str(&body)),
			       want, strlen(want)) == 0,
			    want);
		}
	}
}

static void
test_not_answered(void)
{
	const struct mcp_head head = { .content_type = json };
	const struct mcp_head modern = { .content_type = json,
		.version = "2026-07-28" };
	static const char response[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";

	is_str(look(&head,
		   "{\"jsonrpc\":\"2.0\",\"method\":"
		   "\"notifications/initialized\"}"),
	    "nothing to answer", "a notification");
	is_str(look(&head,
		   "{\"jsonrpc\":\"2.0\",\"method\":"
		   "\"notifications/cancelled\",\"params\":{\"requestId\":1}}"),
	    "nothing to answer", "one that cancels: nobody knows whose");
	is_str(look(&head, response), "nothing to answer", "a response");
	refused(&modern, response, 400, -32600, "1",
	    "in the modern era there are none");
}

static void
test_legacy(void)
{
	const struct mcp_head plain = { .content_type = json };
	struct mcp_head head = { .content_type = json };
	static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
				   "\"tools/list\",\"params\":{\"_meta\":"
				   "{\"progressToken\":\"a\"}}}";
	static const char initialize[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}";

	is_str(look(&plain, list), "legacy 3 progress", "without a version");
	head.version = "2025-03-26";
	is_str(look(&head, list), "legacy 3 progress", "that has no links");
	head.version = "2025-06-18";
	is_str(look(&head, list), "legacy 3 progress links", "that has");
	head.version = "1999-01-01";
	refused(&head, list, 400, -32600, "1", "a version that is none");
	is_str(look(&head, initialize), "legacy 0 links",
	    "but initialize agrees on one");
	refused(&plain,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}",
	    200, -32601, "1", "a method of the other era");
	refused(&plain,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\"}",
	    200, -32601, "1", "one that is not offered");
}

static void
test_modern(void)
{
	const struct mcp_head full = { .content_type = json,
		.version = "2026-07-28",
		.method = "tools/list" };
	struct mcp_head head = full;
	static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
				   "\"tools/list\",\"params\":{" META "}}";
	static const char capable[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\""
	    ":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
	    "\"2026-07-28\"}}}";
	static const char future[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\""
	    ":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
	    "\"2030-01-01\",\"io.modelcontextprotocol/clientCapabilities\":"
	    "{}}}}";

	is_str(look(&full, list), "modern 3 links", "all is said");
	refused(&full,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", 400,
	    -32602, "1", "no _meta");
	refused(&full, capable, 400, -32602, "1", "no capabilities");
	head.version = NULL;
	refused(&head, list, 400, -32020, "1", "no header of the version");
	head.version = "2025-11-25";
	refused(&head, list, 400, -32020, "1", "another version");
	head = full;
	head.method = NULL;
	refused(&head, list, 400, -32020, "1", "no Mcp-Method");
	head.method = "tools/call";
	refused(&head, list, 400, -32020, "1", "another method");
	head.method = "Tools/List";
	refused(&head, list, 400, -32020, "1", "values are case-sensitive");
	head.method = " tools/list\t";
	is_str(look(&head, list), "modern 3 links", "blanks do not count");
	head.version = "2030-01-01";
	ok(strstr(look(&head, future),
	       "{\"code\":-32022,\"message\":\"Unsupported protocol version\","
	       "\"data\":{\"supported\":[\"2026-07-28\",\"2025-11-25\","
	       "\"2025-06-18\",\"2025-03-26\"],\"requested\":"
	       "\"2030-01-01\"}}") != NULL,
	    "a version that is not offered");
	head = full;
	head.method = "ping";
	refused(&head,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
	    "\"params\":{" META "}}",
	    404, -32601, "1", "a method that is gone");
}

static void
test_names(void)
{
	struct mcp_head head = { .content_type = json,
		.version = "2026-07-28",
		.method = "resources/read" };
	static const char read_one[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\","
	    "\"params\":{\"uri\":\"a:\xc3\xa9\"," META "}}";

	refused(&head, read_one, 400, -32020, "1", "no Mcp-Name");
	head.name = "a:e";
	refused(&head, read_one, 400, -32020, "1", "another name");
	head.name = " a:\xc3\xa9 ";
	is_str(look(&head, read_one), "modern 7 links", "as it is");
	head.name = "=?base64?YTrDqQ==?=";
	is_str(look(&head, read_one), "modern 7 links", "in base64");
	head.name = "=?base64?YTrDqQ?=";
	refused(&head, read_one, 400, -32020, "1", "without its padding");
}

static void
test_negotiate(void)
{
	static const char *const asked[][2] = { { "2025-03-26", "2025-03-26" },
		{ "2025-11-25", "2025-11-25" }, { "2026-07-28", "2025-11-25" },
		{ "1999-01-01", "2025-11-25" } };

	static const char *const interpreters[] = { NULL };
	json_t *list = mcp_list_read(interpreters);

	for (size_t i = 0; i < 4; i++) {
		const struct mcp_head head = { .content_type = json };
		struct mcp_message m;
		json_t *result;
		char body[160];

		(void)snprintf(body, sizeof(body),
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
		    "\"params\":{\"protocolVersion\":\"%s\"}}",
		    asked[i][0]);
		ok(mcp_message_parse(&m, &head, body, strlen(body)),
		    asked[i][0]);
		result = mcp_pack_constant(&m, list);
		is_str(json_string_value(json_object_get(result,
			   "protocolVersion")),
		    asked[i][1], "is answered with");
		json_decref(result);
		mcp_message_release(&m);
	}
	json_decref(list);
}

int
main(void)
{
	test_envelope();
	test_ids();
	test_long();
	test_not_answered();
	test_legacy();
	test_modern();
	test_names();
	test_negotiate();
	buf_release(&text);
	return tap_done();
}
