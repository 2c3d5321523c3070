/* SPDX-License-Identifier: MIT */
/*
 * The table of the tools, and the list of it that clients get.
 */
#include "mcp_tools.h"

#include <inttypes.h>
#include <string.h>

#include "mcp_answer.h"
#include "mcp_table.h"

#include "../../../sandbox/base/buf.h"

#define AT(member) offsetof(struct mcp_call, member)

/* ---- arguments ---- */

static const struct mcp_rule
    code = { "code", MCP_RULE_TEXT, AT(code), .required = true, .max = 16 << 20,
	    .help = "The program. The value of a last line that is an "
		    "expression is printed." },
    command = { "command", MCP_RULE_WORD, AT(code), .required = true,
	    .max = MCP_COMMAND_MAX,
	    .help = "For bash -c, or sh where there is no bash." },
    input = { "stdin", MCP_RULE_TEXT, AT(input), .max = 16 << 20,
	    .help = "Standard input." },
    files = { "files", MCP_RULE_FILES, 0,
	    .help = "Files that are put into the folder of the run before it "
		    "begins: for each one of text, base64 and file_id." },
    args = { "args", MCP_RULE_ARGS, AT(args), .help = "sys.argv[1:]." },
    python = { "python", MCP_RULE_PYTHON, AT(python),
	    .help = "The version of Python." },
    timeout = { "timeout_seconds", MCP_RULE_INT, AT(timeout_s),
	    .standard = MCP_TIMEOUT_S, .min = 1, .max = MCP_TIMEOUT_MAX_S,
	    .help = "After so many seconds the run is ended. Many clients "
		    "give up after 60." },
    session = { "session", MCP_RULE_WORD, AT(session), .max = 256,
	    .help = "Of create_session: the run sees and changes the files of "
		    "the session. Without it: in a fresh, empty folder." },
    of_session = { "session", MCP_RULE_WORD, AT(session), .required = true,
	    .max = 256, .help = "Of create_session." },
    ttl = { "ttl_seconds", MCP_RULE_INT, AT(ttl_s), .standard = MCP_TTL_S,
	    .min = 1, .max = MCP_TTL_MAX_S,
	    .help = "After so many seconds the session ends, with its "
		    "files." },
    folder = { "path", MCP_RULE_PATH, AT(path),
	    .help = "Of a folder, relative to that of the session." },
    path = { "path", MCP_RULE_PATH, AT(path), .required = true,
	    .help = "Relative to the folder of the session." },
    offset = { "offset", MCP_RULE_INT, AT(offset), .max = 100 << 20,
	    .help = "Bytes of the file to pass over; next_offset of the answer "
		    "before goes on." },
    limit = { "limit", MCP_RULE_INT, AT(limit), .standard = MCP_READ_BYTES,
	    .min = 4, .max = MCP_READ_MAX,
	    .help = "Bytes at most. Where an answer would be over 1 "
		    "MiB fewer come, and next_offset goes on." },
    text = { "text", MCP_RULE_TEXT, AT(content), .max = 16 << 20,
	    .help = "What the file is to hold; or base64." },
    base64 = { "base64", MCP_RULE_BASE64, AT(content), .max = 16 << 20,
	    .help = "The same for what is no text." };

/* ---- what comes back ---- */

#define SCHEMA(properties, required) \
	"{\"type\":\"object\",\"properties\":{" properties \
	"},\"required\":[" required "]}"
#define FIELD(name, type) "\"" name "\":{\"type\":" type "}"
#define LIST(name, properties, required) \
	"\"" name \
	"\":{\"type\":\"array\",\"items\":" SCHEMA(properties, required) "}"

/* clang-format off */
#define TEXT(name) FIELD(name, "\"string\"")
#define NUMBER(name) FIELD(name, "\"integer\"")
#define TRUTH(name) FIELD(name, "\"boolean\"")
#define KEPT_SCHEMA \
	LIST("files", TEXT("path") "," NUMBER("size") "," TEXT("mime_type") \
	    "," TEXT("uri") "," TEXT("not_shown"), \
	    "\"path\",\"size\",\"mime_type\",\"uri\"")
#define LEFT_SCHEMA \
	LIST("left_out", TEXT("path") "," NUMBER("size") "," TEXT("why") "," \
	    TEXT("not_shown"), \
	    "\"path\",\"size\",\"why\"")
#define REASON_SCHEMA \
	"\"reason\":{\"type\":\"string\",\"enum\":[\"exit\",\"signal\"," \
	"\"time\",\"memory\",\"output\"]}"
#define RUN_FIELDS \
	TEXT("stdout") "," TEXT("stderr") "," \
	FIELD("exit_code", "[\"integer\",\"null\"]") "," REASON_SCHEMA "," \
	TRUTH("timed_out") "," NUMBER("duration_ms") "," \
	TRUTH("truncated") "," KEPT_SCHEMA "," LEFT_SCHEMA
#define RUN_SCHEMA \
	SCHEMA(RUN_FIELDS, \
	    "\"stdout\",\"stderr\",\"exit_code\",\"reason\",\"timed_out\"," \
	    "\"duration_ms\",\"truncated\",\"files\",\"left_out\"")
#define LISTING_SCHEMA \
	SCHEMA(LIST("files", TEXT("path") "," \
	    "\"kind\":{\"type\":\"string\",\"enum\":[\"file\"," \
	    "\"folder\",\"link\",\"other\"]}," NUMBER("size"), \
	    "\"path\",\"kind\",\"size\"") "," TRUTH("truncated"), \
	    "\"files\",\"truncated\"")
/* clang-format on */

/* ---- the table ---- */

const struct mcp_tool_row mcp_tool_rows[MCP_TOOLS] = {
	[MCP_RUN_PYTHON] = { "run_python", "Run Python",
	    "Run a Python program in a container without network, and get what "
	    "it prints, how it ended and the files that it leaves. Pictures "
	    "(PNG, JPEG, GIF, WebP up to 2,000 x 2,000 pixels and 700 kB "
	    "together) come back to be seen: plots by plt.show(), display() "
	    "or plt.savefig(). `await` may stand at the top level. Without "
	    "`session` nothing stays; with it the files of the session do, "
	    "variables do not. Output of more than 20,000 bytes is cut in its "
	    "middle: write long output to a file. At most 120 seconds.",
	    { &code, &input, &files, &args, &session, &python, &timeout },
	    RUN_SCHEMA, .destroys = false, .long_answer = true },
	[MCP_RUN_SHELL] = { "run_shell", "Run a shell command",
	    "Run a shell command in a container without network, and get what "
	    "it prints, how it ended and the files that it leaves; as with "
	    "run_python. Without `session` nothing stays.",
	    { &command, &input, &files, &session, &python, &timeout },
	    RUN_SCHEMA, .destroys = false, .long_answer = true },
	[MCP_CREATE_SESSION] = { "create_session", "Create a session",
	    "Make a folder that stays from run to run, for 15 minutes when "
	    "nothing else is said: its handle is the `session` of the other "
	    "tools. It ends at its time, by close_session, when Inline is "
	    "restarted, and when it is at rest while all are taken and you "
	    "make another one.",
	    { &ttl, &python },
	    SCHEMA(FIELD("session", "\"string\"") "," FIELD("expires_at",
		       "\"string\""),
		"\"session\",\"expires_at\""),
	    .reads = false },
	[MCP_CLOSE_SESSION] = { "close_session", "Close a session",
	    "End a session, and remove its files.", { &of_session },
	    SCHEMA(FIELD("closed", "\"boolean\""), "\"closed\""),
	    .destroys = true, .idempotent = true },
	[MCP_LIST_FILES] = { "list_files", "List files",
	    "List a folder of a session: folders first, then by name; at most "
	    "1,000 entries.",
	    { &of_session, &folder }, LISTING_SCHEMA, .reads = true,
	    .long_answer = true },
	[MCP_READ_FILE] = { "read_file", "Read a file",
	    "Read a file of a session: text, or base64 where it is none; a "
	    "picture comes to be seen as well. 20,000 bytes when nothing else "
	    "is said; next_offset is null at the end of the file.",
	    { &of_session, &path, &offset, &limit },
	    SCHEMA(FIELD("text", "\"string\"") "," FIELD("base64",
		       "\"string\"") "," FIELD("size",
		       "\"integer\"") "," FIELD("mime_type",
		       "\"string\"") "," FIELD("next_offset",
		       "[\"integer\",\"null\"]"),
		"\"size\",\"mime_type\",\"next_offset\""),
	    .reads = true, .long_answer = true },
	[MCP_WRITE_FILE] = { "write_file", "Write a file",
	    "Write a file of a session, whole: what it held before is gone. "
	    "Its folders are made.",
	    { &of_session, &path, &text, &base64 },
	    SCHEMA(FIELD("size", "\"integer\""), "\"size\""), .destroys = true,
	    .idempotent = true },
};

/* ---- as a list ---- */

static const char file_schema[] =
    "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
    "\"text\":{\"type\":\"string\"},\"base64\":{\"type\":\"string\"},"
    "\"file_id\":{\"type\":\"string\",\"description\":\"Of a file in the "
    "store: the id in its inline://files/ID/NAME.\"}},"
    "\"required\":[\"path\"],\"additionalProperties\":false}";

/* What of a property's schema depends on its kind. */
static void
add_kind(struct buf *out, const struct mcp_rule *rule,
    const char *const *interpreters)
{
	switch (rule->kind) {
	case MCP_RULE_INT:
		buf_addf(out,
		    "\"type\":\"integer\",\"minimum\":%" PRId64
		    ",\"maximum\":%" PRId64 ",\"default\":%" PRId64,
		    rule->min, rule->max, rule->standard);
		break;
	case MCP_RULE_FILES:
		buf_addf(out, "\"type\":\"array\",\"maxItems\":%d,\"items\":%s",
		    MCP_FILES_MAX, file_schema);
		break;
	case MCP_RULE_ARGS:
		buf_addf(out,
		    "\"type\":\"array\",\"maxItems\":%d,"
		    "\"items\":{\"type\":\"string\"}",
		    MCP_ARGS_MAX);
		break;
	case MCP_RULE_PYTHON:
		buf_adds(out, "\"type\":\"string\",\"enum\":[");
		for (size_t i = 0; interpreters[i] != NULL; i++) {
			buf_adds(out, i == 0 ? "" : ",");
			mcp_add_text(out, interpreters[i],
			    strlen(interpreters[i]));
		}
		buf_addc(out, ']');
		break;
	case MCP_RULE_TEXT:
	case MCP_RULE_WORD:
	case MCP_RULE_PATH:
	case MCP_RULE_BASE64:
		buf_adds(out, "\"type\":\"string\"");
		if (rule->kind == MCP_RULE_PATH && !rule->required)
			buf_adds(out, ",\"default\":\".\"");
		break;
	}
}

static void
add_input_schema(struct buf *out, const struct mcp_tool_row *row,
    const char *const *interpreters)
{
	const char *comma = "";

	buf_adds(out, "{\"type\":\"object\",\"properties\":{");
	for (size_t i = 0; row->rules[i] != NULL; i++) {
		const struct mcp_rule *rule = row->rules[i];

		buf_addf(out, "%s\"%s\":{", i == 0 ? "" : ",", rule->name);
		add_kind(out, rule, interpreters);
		buf_addf(out, ",\"description\":\"%s\"}", rule->help);
	}
	buf_adds(out, "},\"required\":[");
	for (size_t i = 0; row->rules[i] != NULL; i++) {
		if (!row->rules[i]->required)
			continue;
		buf_addf(out, "%s\"%s\"", comma, row->rules[i]->name);
		comma = ",";
	}
	buf_adds(out, "],\"additionalProperties\":false}");
}

/* Claude Code shows its model 2 kB of an answer of over 50,000 characters,
 * unless the tool says that so many are meant. */
#define LONG_ANSWER ",\"_meta\":{\"anthropic/maxResultSizeChars\":500000}"

void
mcp_add_tools(struct buf *out, const char *const *interpreters)
{
	for (size_t i = 0; i < MCP_TOOLS; i++) {
		const struct mcp_tool_row *row = &mcp_tool_rows[i];

		buf_addf(out,
		    "%s{\"name\":\"%s\",\"title\":\"%s\","
		    "\"description\":\"%s\",\"inputSchema\":",
		    i == 0 ? "[" : ",", row->name, row->title, row->help);
		add_input_schema(out, row, interpreters);
		buf_addf(out,
		    ",\"outputSchema\":%s,\"annotations\":{\"title\":\"%s\","
		    "\"readOnlyHint\":%s,\"destructiveHint\":%s,"
		    "\"idempotentHint\":%s,\"openWorldHint\":false}%s}",
		    row->result, row->title, row->reads ? "true" : "false",
		    row->destroys ? "true" : "false",
		    row->idempotent || row->reads ? "true" : "false",
		    row->long_answer ? LONG_ANSWER : "");
	}
	buf_addc(out, ']');
}
