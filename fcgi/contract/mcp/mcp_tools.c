/* SPDX-License-Identifier: MIT */
/*
 * The table of the tools, the list of it that clients get, and a call's
 * arguments, checked by it.  The model is told of a wrong argument in one line,
 * which says what to write instead.
 */
#include "contract/mcp/mcp_tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "contract/base64.h"
#include "contract/fields.h"
#include "contract/mcp/mcp_message.h"
#include "contract/stage.h"

#include "base/buf.h"
#include "protocol/frame_limits.h"

#define HOME "/workspace"

/* Arguments of which the fields' table does not say all.  All texts are ASCII
 * without '"' and '\\'. */
enum mcp_role {
	MCP_PLAIN,
	MCP_PATH,
	MCP_BASE64,
	MCP_PYTHON,
	MCP_ARGS,
	MCP_FILES,
};

/* An argument, and its place in struct mcp_call. */
struct mcp_rule {
	struct field field;
	const char *help; /* for the model */
	enum mcp_role role;
};

#define MCP_RULES_MAX 8

struct mcp_tool_row {
	const char *name;
	const char *title;
	const char *help;
	const struct mcp_rule *rules[MCP_RULES_MAX]; /* ends with NULL */
	const char *result; /* schema of structuredContent */
	bool reads;	    /* it changes nothing */
	bool destroys;
	bool idempotent;
	bool long_answer; /* it may have over 50,000 characters */
};

/* ---- arguments ---- */

#define ARGUMENT(name, kind, member) \
	name, kind, offsetof(struct mcp_call, member), .nullable = true
#define TEXT_MAX (16 << 20)

static const struct field file_rows[] = {
	{ "path", FIELD_WORD, offsetof(struct mcp_file, path),
	    .required = true },
	{ "text", FIELD_TEXT, offsetof(struct mcp_file, content),
	    .required = false },
	{ "base64", FIELD_TEXT, offsetof(struct mcp_file, base64),
	    .required = false },
	{ "file_id", FIELD_WORD, offsetof(struct mcp_file, id),
	    .required = false },
	{ .name = NULL },
};

static const struct mcp_rule
    arg_code = { { ARGUMENT("code", FIELD_TEXT, code), .required = true,
		     .max = TEXT_MAX },
	    "The program. The value of a last line that is an expression is "
	    "printed.",
	    MCP_PLAIN },
    arg_command = { { ARGUMENT("command", FIELD_WORD, code), .required = true,
			.max = MCP_COMMAND_MAX },
	    "For bash -c, or sh where there is no bash.", MCP_PLAIN },
    arg_input = { { ARGUMENT("stdin", FIELD_TEXT, input), .max = TEXT_MAX },
	    "Standard input.", MCP_PLAIN },
    arg_files = { { ARGUMENT("files", FIELD_LIST, files), .max = MCP_FILES_MAX,
		      .items = file_rows, .size = sizeof(struct mcp_file) },
	    "Files that are put into the folder of the run before it begins: "
	    "for each one of text, base64 and file_id.",
	    MCP_FILES },
    arg_args = { { ARGUMENT("args", FIELD_LIST, args), .max = MCP_ARGS_MAX },
	    "sys.argv[1:].", MCP_ARGS },
    arg_python = { { ARGUMENT("python", FIELD_WORD, python) },
	    "The version of Python.", MCP_PYTHON },
    arg_timeout = { { ARGUMENT("timeout_seconds", FIELD_WHOLE, timeout_s),
			.standard = MCP_TIMEOUT_S, .min = 1,
			.max = MCP_TIMEOUT_MAX_S },
	    "After so many seconds the run is ended. Many clients give up "
	    "after 60.",
	    MCP_PLAIN },
    arg_session = { { ARGUMENT("session", FIELD_WORD, session), .max = 256 },
	    "Of create_session: the run sees and changes the files of the "
	    "session. Without it: in a fresh, empty folder.",
	    MCP_PLAIN },
    arg_of_session = { { ARGUMENT("session", FIELD_WORD, session),
			   .required = true, .max = 256 },
	    "Of create_session.", MCP_PLAIN },
    arg_ttl = { { ARGUMENT("ttl_seconds", FIELD_WHOLE, ttl_s),
		    .standard = MCP_TTL_S, .min = 1, .max = MCP_TTL_MAX_S },
	    "After so many seconds the session ends, with its files.",
	    MCP_PLAIN },
    arg_folder = { { ARGUMENT("path", FIELD_WORD, path) },
	    "Of a folder, relative to that of the session.", MCP_PATH },
    arg_path = { { ARGUMENT("path", FIELD_WORD, path), .required = true },
	    "Relative to the folder of the session.", MCP_PATH },
    arg_offset = { { ARGUMENT("offset", FIELD_WHOLE, offset),
		       .max = 100 << 20 },
	    "Bytes of the file to pass over; next_offset of the answer before "
	    "goes on.",
	    MCP_PLAIN },
    arg_limit = { { ARGUMENT("limit", FIELD_WHOLE, limit),
		      .standard = MCP_READ_BYTES, .min = 4,
		      .max = MCP_READ_MAX },
	    "Bytes at most. Where an answer would be over 1 MiB fewer come, "
	    "and next_offset goes on.",
	    MCP_PLAIN },
    arg_text = { { ARGUMENT("text", FIELD_TEXT, content), .max = TEXT_MAX },
	    "What the file is to hold; or base64.", MCP_PLAIN },
    arg_base64 = { { ARGUMENT("base64", FIELD_TEXT, base64) },
	    "The same for what is no text.", MCP_BASE64 };

/* ---- schemas of results ---- */

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
#define READ_FIELDS \
	TEXT("text") "," TEXT("base64") "," NUMBER("size") "," \
	TEXT("mime_type") "," FIELD("next_offset", "[\"integer\",\"null\"]")
#define LISTING_SCHEMA \
	SCHEMA(LIST("files", TEXT("path") "," \
	    "\"kind\":{\"type\":\"string\",\"enum\":[\"file\"," \
	    "\"folder\",\"link\",\"other\"]}," NUMBER("size"), \
	    "\"path\",\"kind\",\"size\"") "," TRUTH("truncated"), \
	    "\"files\",\"truncated\"")
/* clang-format on */

/* ---- the table ---- */

static const struct mcp_tool_row rows[MCP_TOOLS] = {
	[MCP_RUN_PYTHON] = { "run_python", "Run Python",
	    "Run a Python program in a container without network, and get what "
	    "it prints, how it ended and the files that it leaves. Pictures "
	    "(PNG, JPEG, GIF, WebP up to 2,000 x 2,000 pixels and 700 kB "
	    "together) come back to be seen: plots by plt.show(), display() "
	    "or plt.savefig(). `await` may stand at the top level. Without "
	    "`session` nothing stays; with it the files of the session do, "
	    "variables do not. Output of more than 20,000 bytes is cut in its "
	    "middle: write long output to a file. At most 120 seconds.",
	    { &arg_code, &arg_input, &arg_files, &arg_args, &arg_session,
		&arg_python, &arg_timeout },
	    RUN_SCHEMA, .long_answer = true },
	[MCP_RUN_SHELL] = { "run_shell", "Run a shell command",
	    "Run a shell command in a container without network, and get what "
	    "it prints, how it ended and the files that it leaves; as with "
	    "run_python. Without `session` nothing stays.",
	    { &arg_command, &arg_input, &arg_files, &arg_session, &arg_python,
		&arg_timeout },
	    RUN_SCHEMA, .long_answer = true },
	[MCP_CREATE_SESSION] = { "create_session", "Create a session",
	    "Make a folder that stays from run to run, for 15 minutes when "
	    "nothing else is said: its handle is the `session` of the other "
	    "tools. It ends at its time, by close_session, when Inline is "
	    "restarted, and when it is at rest while all are taken and you "
	    "make another one.",
	    { &arg_ttl, &arg_python },
	    SCHEMA(TEXT("session") "," TEXT("expires_at"),
		"\"session\",\"expires_at\""),
	    .reads = false },
	[MCP_CLOSE_SESSION] = { "close_session", "Close a session",
	    "End a session, and remove its files.", { &arg_of_session },
	    SCHEMA(TRUTH("closed"), "\"closed\""), .destroys = true,
	    .idempotent = true },
	[MCP_LIST_FILES] = { "list_files", "List files",
	    "List a folder of a session: folders first, then by name; at most "
	    "1,000 entries.",
	    { &arg_of_session, &arg_folder }, LISTING_SCHEMA, .reads = true,
	    .long_answer = true },
	[MCP_READ_FILE] = { "read_file", "Read a file",
	    "Read a file of a session: text, or base64 where it is none; a "
	    "picture comes to be seen as well. 20,000 bytes when nothing else "
	    "is said; next_offset is null at the end of the file.",
	    { &arg_of_session, &arg_path, &arg_offset, &arg_limit },
	    SCHEMA(READ_FIELDS, "\"size\",\"mime_type\",\"next_offset\""),
	    .reads = true, .long_answer = true },
	[MCP_WRITE_FILE] = { "write_file", "Write a file",
	    "Write a file of a session, whole: what it held before is gone. "
	    "Its folders are made.",
	    { &arg_of_session, &arg_path, &arg_text, &arg_base64 },
	    SCHEMA(NUMBER("size"), "\"size\""), .destroys = true,
	    .idempotent = true },
};

/* ---- as a list ---- */

static const char file_schema[] =
    "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
    "\"text\":{\"type\":\"string\"},\"base64\":{\"type\":\"string\"},"
    "\"file_id\":{\"type\":\"string\",\"description\":\"Of a file in the "
    "store: the id in its inline://files/ID/NAME.\"}},"
    "\"required\":[\"path\"],\"additionalProperties\":false}";

/* Append the type of a property, and its bounds. */
static void
add_kind(struct buf *out, const struct mcp_rule *rule,
    const char *const *interpreters)
{
	const struct field *field = &rule->field;

	if (field->kind == FIELD_WHOLE) {
		buf_addf(out,
		    "\"type\":\"integer\",\"minimum\":%" PRId64
		    ",\"maximum\":%" PRId64 ",\"default\":%" PRId64,
		    field->min, field->max, field->standard);
		return;
	}
	if (field->kind == FIELD_LIST) {
		buf_addf(out,
		    "\"type\":\"array\",\"maxItems\":%" PRId64 ",\"items\":%s",
		    field->max,
		    field->items == NULL ? "{\"type\":\"string\"}" :
					   file_schema);
		return;
	}
	buf_adds(out, "\"type\":\"string\"");
	if (rule->role == MCP_PATH && !field->required)
		buf_adds(out, ",\"default\":\".\"");
	if (rule->role != MCP_PYTHON)
		return;
	buf_adds(out, ",\"enum\":[");
	for (size_t i = 0; interpreters[i] != NULL; i++) {
		buf_adds(out, i == 0 ? "" : ",");
		mcp_add_text(out, interpreters[i], strlen(interpreters[i]));
	}
	buf_addc(out, ']');
}

static void
add_input_schema(struct buf *out, const struct mcp_tool_row *row,
    const char *const *interpreters)
{
	const char *comma = "";

	buf_adds(out, "{\"type\":\"object\",\"properties\":{");
	for (size_t i = 0; row->rules[i] != NULL; i++) {
		const struct mcp_rule *rule = row->rules[i];

		buf_addf(out, "%s\"%s\":{", i == 0 ? "" : ",",
		    rule->field.name);
		add_kind(out, rule, interpreters);
		buf_addf(out, ",\"description\":\"%s\"}", rule->help);
	}
	buf_adds(out, "},\"required\":[");
	for (size_t i = 0; row->rules[i] != NULL; i++) {
		if (!row->rules[i]->field.required)
			continue;
		buf_addf(out, "%s\"%s\"", comma, row->rules[i]->field.name);
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
		const struct mcp_tool_row *row = &rows[i];

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

/* ---- a call ---- */

/* A call whose arguments are checked. */
struct checking {
	struct mcp_call *call;
	struct mcp_message *m;
	const struct mcp_tool_row *row;
	const char *const *interpreters;
	struct buf *why;
};

/* Refuse an argument.  Always false.  label: its name, or a part of it. */
static bool __attribute__((format(printf, 3, 4)))
refuse_argument(struct checking *c, const char *label, const char *fmt, ...)
{
	va_list ap;

	buf_addf(c->why, "%s: argument %s ", c->row->name, label);
	va_start(ap, fmt);
	buf_addv(c->why, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- values ---- */

static bool
mcp_decode_base64(struct checking *c, const char *label,
    struct cell_bytes *content)
{
	char *data = jtree_array(&c->m->doc, content->len + 1, 1);
	size_t len;

	if (!base64_decode(content->data, content->len, true, data, &len))
		return refuse_argument(c, label,
		    "must be base64, with its padding.");
	data[len] = '\0';
	*content = (struct cell_bytes){ data, len };
	return true;
}

/* Undo the escapes of a path that is too long, if it has any.  Its new
 * length. */
static size_t
shorten_path(char *path, size_t len)
{
	auto_buf struct buf real = BUF_INIT(len + 1);

	if (!path_text_read(&real, path))
		return len;
	memcpy(path, buf_str(&real), real.len + 1);
	return real.len;
}

/* Resolve a path below the folder of the run; absolute ones of that folder are
 * meant so, too.  *decoded: its escapes are undone. */
static bool
mcp_resolve_path(struct checking *c, const char *label, struct cell_bytes *path,
    bool *decoded)
{
	enum stage_up up;
	char *out;
	size_t text_len;
	size_t len;

	if (strncmp(path->data, HOME, strlen(HOME)) == 0 &&
	    (path->data[strlen(HOME)] == '/' ||
		path->data[strlen(HOME)] == '\0')) {
		path->data += strlen(HOME);
		path->len -= strlen(HOME);
	} else if (path->data[0] == '/') {
		return refuse_argument(c, label,
		    "must be relative to the folder of the run, " HOME ".");
	}
	out = jtree_array(&c->m->doc, path->len + 2, 1);
	len = stage_resolve(path->data, path->len, out, 0, &up);
	if (up != STAGE_DOWN)
		return refuse_argument(c, label, "must not hold '..'.");
	text_len = len;
	if (stage_is_long(out))
		len = shorten_path(out, len);
	if (stage_is_long(out))
		return refuse_argument(c, label,
		    "must have at most %d bytes, and %d between two '/'.",
		    LIMIT_PATH, LIMIT_NAME);
	*path = (struct cell_bytes){ out, len };
	*decoded = len != text_len;
	return true;
}

static bool
check_python(struct checking *c)
{
	for (size_t i = 0; c->interpreters[i] != NULL; i++)
		if (strcmp(c->call->python.data, c->interpreters[i]) == 0)
			return true;
	(void)refuse_argument(c, "python", "must be one of");
	for (size_t i = 0; c->interpreters[i] != NULL; i++)
		buf_addf(c->why, "%s \"%s\"", i == 0 ? "" : ",",
		    c->interpreters[i]);
	buf_addc(c->why, '.');
	return false;
}

static bool
check_args(struct checking *c)
{
	struct mcp_call *call = c->call;
	const struct cell_bytes *args = call->args.items;
	size_t total = 0;

	call->argv = jtree_array(&c->m->doc, call->args.count + 1,
	    sizeof(*call->argv));
	for (size_t i = 0; i < call->args.count; i++) {
		total += args[i].len;
		if (strlen(args[i].data) != args[i].len ||
		    total > MCP_ARGS_BYTES)
			return refuse_argument(c, "args",
			    "must be Unicode text without NUL characters, and "
			    "have %d bytes at most.",
			    MCP_ARGS_BYTES);
		call->argv[i] = args[i].data;
	}
	return true;
}

/* ---- files ---- */

/* Check a file, which was sent with so many members. */
static bool
mcp_check_file(struct checking *c, struct mcp_file *file, size_t members,
    const char *label)
{
	bool decoded;

	if ((file->content.data != NULL) + (file->base64.data != NULL) +
		    (file->id.data != NULL) !=
		1 ||
	    members != 2)
		return refuse_argument(c, label,
		    "must have path, exactly one of text, base64 and file_id, "
		    "and nothing else.");
	if (!mcp_resolve_path(c, label, &file->path, &decoded))
		return false;
	if (file->base64.data == NULL)
		return true;
	file->content = file->base64;
	return mcp_decode_base64(c, label, &file->content);
}

/* Can they be written one after the other? */
static bool
mcp_stage_file(struct checking *c, struct stage *stage, const char *path,
    const char *label)
{
	static const char *const wrong[] = {
		[STAGE_EMPTY] = "has a path that names no file.",
		[STAGE_LONG] = "has a name of over 255 bytes.",
		[STAGE_FULL] = "is one too many.",
		[STAGE_IS_FOLDER] =
		    "has the path of a folder that another file needs.",
		[STAGE_PARENT_IS_FILE] = "has a path below another file.",
		[STAGE_ABOVE_IS_FILE] = "has a path below another file.",
	};
	enum stage_outcome outcome = stage_add(stage, path);

	_Static_assert(LIMIT_NAME == 255, "as it is told");
	return outcome == STAGE_FINE ||
	    refuse_argument(c, label, "%s", wrong[outcome]);
}

static bool
mcp_check_files(struct checking *c, const json_t *value)
{
	auto_stage struct stage stage = { .count = 0 };
	struct mcp_file *files = c->call->files.items;

	for (size_t i = 0; i < c->call->files.count; i++) {
		size_t members = json_object_size(json_array_get(value, i));
		char label[32];

		(void)snprintf(label, sizeof(label), "files[%zu]", i);
		if (!mcp_check_file(c, &files[i], members, label) ||
		    !mcp_stage_file(c, &stage, files[i].path.data, label))
			return false;
	}
	return true;
}

/* ---- all of them ---- */

/* Check an argument that was sent. */
static bool
check_role(struct checking *c, const struct mcp_rule *rule, const json_t *value)
{
	struct mcp_call *call = c->call;

	switch (rule->role) {
	case MCP_PLAIN:
		return true;
	case MCP_PATH:
		return mcp_resolve_path(c, rule->field.name, &call->path,
		    &call->path_decoded);
	case MCP_BASE64:
		if (call->content.data != NULL)
			return refuse_argument(c, rule->field.name,
			    "must not come together with text.");
		call->content = call->base64;
		return mcp_decode_base64(c, rule->field.name, &call->content);
	case MCP_PYTHON:
		return check_python(c);
	case MCP_ARGS:
		return check_args(c);
	case MCP_FILES:
		return mcp_check_files(c, value);
	}
	return false;
}

/* Refuse an argument that the tool does not have: it may be a misspelt one. */
static bool
check_names(struct checking *c, json_t *arguments)
{
	const struct mcp_rule *const *rules = c->row->rules;
	const char *wrong = NULL;
	const char *name;
	const json_t *value;

	json_object_foreach(arguments, name, value) {
		size_t i = 0;

		while (rules[i] != NULL &&
		    strcmp(rules[i]->field.name, name) != 0)
			i++;
		if (rules[i] == NULL && wrong == NULL)
			wrong = name;
	}
	if (wrong == NULL)
		return true;
	buf_addf(c->why, "%s: there is no argument '%.60s'; there are",
	    c->row->name, wrong);
	for (size_t i = 0; rules[i] != NULL; i++)
		buf_addf(c->why, "%s %s", i == 0 ? "" : ",",
		    rules[i]->field.name);
	buf_addc(c->why, '.');
	return false;
}

/* Some clients write null for an argument that they leave out. */
static bool
mcp_read_arguments(struct checking *c, json_t *arguments)
{
	struct field_error error;

	if (!check_names(c, arguments))
		return false;
	for (size_t i = 0; c->row->rules[i] != NULL; i++) {
		const struct mcp_rule *rule = c->row->rules[i];
		const json_t *value = json_object_get(arguments,
		    rule->field.name);

		if (!field_read(&c->m->doc, &rule->field, arguments, c->call,
			&error)) {
			buf_addf(c->why, "%s: argument ", c->row->name);
			field_error_add(c->why, &error);
			buf_addc(c->why, '.');
			return false;
		}
		if (!jtree_is_absent(value) && !check_role(c, rule, value))
			return false;
	}
	return true;
}

/* Check what the table cannot say. */
static bool
check_together(struct checking *c)
{
	const struct mcp_call *call = c->call;

	if (call->tool == MCP_WRITE_FILE && call->content.data == NULL)
		return refuse_argument(c, "text", "is missing, or base64.");
	if ((call->tool == MCP_READ_FILE || call->tool == MCP_WRITE_FILE) &&
	    call->path.len == 0)
		return refuse_argument(c, "path", "must name a file.");
	if (call->python.data != NULL && call->session.data != NULL)
		return refuse_argument(c, "python",
		    "belongs to create_session where there is a session.");
	return true;
}

enum mcp_verdict
mcp_call_parse(struct mcp_call *call, struct mcp_message *m,
    const char *const *interpreters, struct mcp_fault *fault, struct buf *why)
{
	const json_t *name = json_object_get(m->params, "name");
	json_t *arguments = json_object_get(m->params, "arguments");
	struct checking c = { call, m, NULL, interpreters, why };
	size_t i = 0;

	*call = (struct mcp_call){ .path = { .data = "" } };
	if (!json_is_string(name) ||
	    (arguments != NULL && !json_is_object(arguments))) {
		(void)mcp_refuse(fault, m, 400, MCP_BAD_PARAMS,
		    "Invalid params: name must be a string, arguments an "
		    "object");
		return MCP_CALL_FAULT;
	}
	while (i < MCP_TOOLS && !jtree_is(name, rows[i].name))
		i++;
	if (i == MCP_TOOLS) {
		(void)mcp_refuse(fault, m, 400, MCP_BAD_PARAMS,
		    "Unknown tool: %.200s", json_string_value(name));
		return MCP_CALL_FAULT;
	}
	call->tool = (enum mcp_tool)i;
	c.row = &rows[i];
	return mcp_read_arguments(&c, arguments) && check_together(&c) ?
	    MCP_CALL_FINE :
	    MCP_CALL_MENDABLE;
}
