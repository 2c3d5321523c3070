/* SPDX-License-Identifier: MIT */
/*
 * The table of the tools, the list of it that clients get, and a call's
 * arguments, checked by it.  The model is told of a wrong argument in one line,
 * which says what to write instead.
 */
#include "contract/mcp/mcp_tools.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "contract/base64.h"
#include "contract/mcp/mcp_message.h"
#include "contract/stage.h"
#include "pytext/pyutf8.h"

#include "base/buf.h"
#include "protocol/frame_limits.h"

#define AT(member) offsetof(struct mcp_call, member)
#define HOME "/workspace"

/* Rows and columns of the table.  All texts are ASCII without '"' and '\'. */
enum mcp_rule_kind {
	MCP_RULE_TEXT, /* any text of at most max bytes */
	MCP_RULE_WORD, /* the same without NUL, and not empty */
	MCP_RULE_PATH,
	MCP_RULE_BASE64,
	MCP_RULE_INT, /* from min to max */
	MCP_RULE_PYTHON,
	MCP_RULE_ARGS,
	MCP_RULE_FILES,
};

/* An argument, and where in struct mcp_call its value goes. */
struct mcp_rule {
	const char *name;
	enum mcp_rule_kind kind;
	size_t offset;
	bool required;
	int64_t standard; /* of what is not there */
	int64_t min;
	int64_t max;
	const char *help; /* for the model */
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

static const struct mcp_rule
    arg_code = { "code", MCP_RULE_TEXT, AT(code), .required = true,
	    .max = 16 << 20,
	    .help = "The program. The value of a last line that is an "
		    "expression is printed." },
    arg_command = { "command", MCP_RULE_WORD, AT(code), .required = true,
	    .max = MCP_COMMAND_MAX,
	    .help = "For bash -c, or sh where there is no bash." },
    arg_input = { "stdin", MCP_RULE_TEXT, AT(input), .max = 16 << 20,
	    .help = "Standard input." },
    arg_files = { "files", MCP_RULE_FILES, 0,
	    .help = "Files that are put into the folder of the run before it "
		    "begins: for each one of text, base64 and file_id." },
    arg_args = { "args", MCP_RULE_ARGS, AT(args), .help = "sys.argv[1:]." },
    arg_python = { "python", MCP_RULE_PYTHON, AT(python),
	    .help = "The version of Python." },
    arg_timeout = { "timeout_seconds", MCP_RULE_INT, AT(timeout_s),
	    .standard = MCP_TIMEOUT_S, .min = 1, .max = MCP_TIMEOUT_MAX_S,
	    .help = "After so many seconds the run is ended. Many clients "
		    "give up after 60." },
    arg_session = { "session", MCP_RULE_WORD, AT(session), .max = 256,
	    .help = "Of create_session: the run sees and changes the files of "
		    "the session. Without it: in a fresh, empty folder." },
    arg_of_session = { "session", MCP_RULE_WORD, AT(session), .required = true,
	    .max = 256, .help = "Of create_session." },
    arg_ttl = { "ttl_seconds", MCP_RULE_INT, AT(ttl_s), .standard = MCP_TTL_S,
	    .min = 1, .max = MCP_TTL_MAX_S,
	    .help = "After so many seconds the session ends, with its "
		    "files." },
    arg_folder = { "path", MCP_RULE_PATH, AT(path),
	    .help = "Of a folder, relative to that of the session." },
    arg_path = { "path", MCP_RULE_PATH, AT(path), .required = true,
	    .help = "Relative to the folder of the session." },
    arg_offset = { "offset", MCP_RULE_INT, AT(offset), .max = 100 << 20,
	    .help = "Bytes of the file to pass over; next_offset of the answer "
		    "before goes on." },
    arg_limit = { "limit", MCP_RULE_INT, AT(limit), .standard = MCP_READ_BYTES,
	    .min = 4, .max = MCP_READ_MAX,
	    .help = "Bytes at most. Where an answer would be over 1 "
		    "MiB fewer come, and next_offset goes on." },
    arg_text = { "text", MCP_RULE_TEXT, AT(content), .max = 16 << 20,
	    .help = "What the file is to hold; or base64." },
    arg_base64 = { "base64", MCP_RULE_BASE64, AT(content), .max = 16 << 20,
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

/* Append the part of a property's schema that depends on its kind. */
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
object_to(struct checking *c, const char *label, const char *fmt, ...)
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
take_text(struct checking *c, const char *label, const struct pyvalue *value,
    struct mcp_bytes *text)
{
	if (value->type != PYVALUE_STRING) {
		(void)object_to(c, label, "must be a string.");
		return false;
	}
	if (pyutf8_has_surrogate(value->u.text, value->count)) {
		(void)object_to(c, label,
		    "must be Unicode text; it holds half of a surrogate pair.");
		return false;
	}
	*text = (struct mcp_bytes){ .data = value->u.text,
		.len = value->count };
	return true;
}

static bool
take_word(struct checking *c, const char *label, const struct pyvalue *value,
    struct mcp_bytes *text)
{
	if (!take_text(c, label, value, text))
		return false;
	if (text->len == 0)
		return object_to(c, label, "must not be empty.");
	if (strlen(text->data) != text->len)
		return object_to(c, label, "must not hold a NUL character.");
	return true;
}

static bool
take_base64(struct checking *c, const char *label, const struct pyvalue *value,
    struct mcp_bytes *content)
{
	char *data;
	size_t len;

	if (!take_text(c, label, value, content))
		return false;
	data = pyjson_tree_array(&c->m->doc, content->len + 1, 1);
	if (!base64_decode(content->data, content->len, data, &len))
		return object_to(c, label, "must be base64, with its padding.");
	data[len] = '\0';
	*content = (struct mcp_bytes){ .data = data, .len = len };
	return true;
}

/* Undo the escapes of a path that is too long, if it has any.  Its new
 * length. */
static size_t
shorten(char *path, size_t len)
{
	auto_buf struct buf real = BUF_INIT(len + 1);

	if (!path_text_read(&real, path))
		return len;
	memcpy(path, buf_str(&real), real.len + 1);
	return real.len;
}

/* A path below the folder of the run; absolute ones of that folder are meant
 * so, too. */
static bool
take_path(struct checking *c, const char *label, const struct pyvalue *value,
    struct mcp_bytes *path)
{
	enum stage_up up;
	char *out;
	size_t text_len;
	size_t len;

	if (!take_word(c, label, value, path))
		return false;
	if (strncmp(path->data, HOME, strlen(HOME)) == 0 &&
	    (path->data[strlen(HOME)] == '/' ||
		path->data[strlen(HOME)] == '\0')) {
		path->data += strlen(HOME);
		path->len -= strlen(HOME);
	} else if (path->data[0] == '/') {
		return object_to(c, label,
		    "must be relative to the folder of the run, " HOME ".");
	}
	out = pyjson_tree_array(&c->m->doc, path->len + 2, 1);
	len = stage_resolve(path->data, path->len, out, 0, &up);
	if (up != STAGE_DOWN)
		return object_to(c, label, "must not hold '..'.");
	text_len = len;
	if (stage_is_long(out))
		len = shorten(out, len);
	if (stage_is_long(out))
		return object_to(c, label,
		    "must have at most %d bytes, and %d between two '/'.",
		    LIMIT_PATH, LIMIT_NAME);
	*path = (struct mcp_bytes){ out, len, len != text_len };
	return true;
}

static bool
take_int(struct checking *c, const struct mcp_rule *rule,
    const struct pyvalue *value, int64_t *number)
{
	bool whole = value->type == PYVALUE_INT;

	*number = whole ? value->u.integer : 0;
	/* JSON has one kind of number: 5.0 is 5. */
	if (value->type == PYVALUE_FLOAT && fabs(value->u.real) < 1e15 &&
	    value->u.real == (double)(int64_t)value->u.real) {
		whole = true;
		*number = (int64_t)value->u.real;
	}
	if (whole && *number >= rule->min && *number <= rule->max)
		return true;
	return object_to(c, rule->name,
	    "must be an integer from %" PRId64 " to %" PRId64 ".", rule->min,
	    rule->max);
}

static bool
take_python(struct checking *c, const struct mcp_rule *rule,
    const struct pyvalue *value, struct mcp_bytes *python)
{
	for (size_t i = 0; c->interpreters[i] != NULL; i++) {
		if (!pyvalue_is(value, c->interpreters[i]))
			continue;
		*python = (struct mcp_bytes){ .data = value->u.text,
			.len = value->count };
		return true;
	}
	(void)object_to(c, rule->name, "must be one of");
	for (size_t i = 0; c->interpreters[i] != NULL; i++)
		buf_addf(c->why, "%s \"%s\"", i == 0 ? "" : ",",
		    c->interpreters[i]);
	buf_addc(c->why, '.');
	return false;
}

static bool
take_args(struct checking *c, const struct mcp_rule *rule,
    const struct pyvalue *value, const char ***args)
{
	const struct pyvalue *item;
	size_t total = 0;
	size_t n = 0;

	if (value->type != PYVALUE_ARRAY || value->count > MCP_ARGS_MAX)
		return object_to(c, rule->name,
		    "must be an array of at most %d strings.", MCP_ARGS_MAX);
	*args = pyjson_tree_array(&c->m->doc, value->count + 1, sizeof(**args));
	for (item = value->u.parts.first; item != NULL; item = item->next) {
		struct mcp_bytes word;

		if (!take_text(c, rule->name, item, &word))
			return false;
		total += word.len;
		if (strlen(word.data) != word.len || total > MCP_ARGS_BYTES)
			return object_to(c, rule->name,
			    "must hold no NUL character, and %d bytes at most.",
			    MCP_ARGS_BYTES);
		(*args)[n++] = word.data;
	}
	return true;
}

/* ---- files ---- */

static bool
take_file(struct checking *c, const struct pyvalue *value,
    struct mcp_file *file, const char *label)
{
	const struct pyvalue *path = pyvalue_get(value, "path");
	const struct pyvalue *text = pyvalue_get(value, "text");
	const struct pyvalue *base64 = pyvalue_get(value, "base64");
	const struct pyvalue *id = pyvalue_get(value, "file_id");

	if (value->type != PYVALUE_OBJECT || path == NULL)
		return object_to(c, label,
		    "must be an object with path, and one of text, base64 and "
		    "file_id.");
	if ((text != NULL) + (base64 != NULL) + (id != NULL) != 1 ||
	    value->count != 2)
		return object_to(c, label,
		    "must have path, exactly one of text, base64 and file_id, "
		    "and nothing else.");
	if (!take_path(c, label, path, &file->path))
		return false;
	if (text != NULL)
		return take_text(c, label, text, &file->content);
	if (base64 != NULL)
		return take_base64(c, label, base64, &file->content);
	return take_word(c, label, id, &file->id);
}

/* Can they be written one after the other? */
static bool
stage_file(struct checking *c, struct stage *stage, const char *path,
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
	    object_to(c, label, "%s", wrong[outcome]);
}

static bool
take_files(struct checking *c, const struct mcp_rule *rule,
    const struct pyvalue *value)
{
	auto_stage struct stage stage = { .count = 0 };
	const struct pyvalue *item;
	struct mcp_call *call = c->call;

	if (value->type != PYVALUE_ARRAY || value->count > MCP_FILES_MAX)
		return object_to(c, rule->name,
		    "must be an array of at most %d files.", MCP_FILES_MAX);
	call->files = pyjson_tree_array(&c->m->doc, value->count + 1,
	    sizeof(*call->files));
	for (item = value->u.parts.first; item != NULL; item = item->next) {
		struct mcp_file *file = &call->files[call->file_count];
		char label[32];

		(void)snprintf(label, sizeof(label), "files[%zu]",
		    call->file_count++);
		if (!take_file(c, item, file, label) ||
		    !stage_file(c, &stage, file->path.data, label))
			return false;
	}
	return true;
}

/* ---- all of them ---- */

/* Take an argument that was sent. */
static bool
take(struct checking *c, const struct mcp_rule *rule,
    const struct pyvalue *value)
{
	void *field = (char *)c->call + rule->offset;
	struct mcp_bytes *bytes = field;

	switch (rule->kind) {
	case MCP_RULE_TEXT:
	case MCP_RULE_WORD:
		if (!(rule->kind == MCP_RULE_TEXT ?
			    take_text(c, rule->name, value, bytes) :
			    take_word(c, rule->name, value, bytes)))
			return false;
		if (bytes->len > (size_t)rule->max)
			return object_to(c, rule->name,
			    "must have at most %" PRId64 " bytes.", rule->max);
		return true;
	case MCP_RULE_PATH:
		return take_path(c, rule->name, value, bytes);
	case MCP_RULE_BASE64:
		if (bytes->data != NULL)
			return object_to(c, rule->name,
			    "must not come together with text.");
		return take_base64(c, rule->name, value, bytes);
	case MCP_RULE_INT:
		return take_int(c, rule, value, field);
	case MCP_RULE_PYTHON:
		return take_python(c, rule, value, bytes);
	case MCP_RULE_ARGS:
		return take_args(c, rule, value, field);
	case MCP_RULE_FILES:
		return take_files(c, rule, value);
	}
	return false;
}

static const struct mcp_rule *
find_rule(const struct mcp_tool_row *row, const struct pyvalue *argument)
{
	for (size_t i = 0; row->rules[i] != NULL; i++)
		if (strlen(row->rules[i]->name) == argument->name_len &&
		    memcmp(row->rules[i]->name, argument->name,
			argument->name_len) == 0)
			return row->rules[i];
	return NULL;
}

/* Refuse an argument that the tool does not have: it may be a misspelt one. */
static bool
refuse_unknown(struct checking *c, const struct pyvalue *argument)
{
	buf_addf(c->why, "%s: there is no argument '%.60s'; there are",
	    c->row->name, argument->name);
	for (size_t i = 0; c->row->rules[i] != NULL; i++)
		buf_addf(c->why, "%s %s", i == 0 ? "" : ",",
		    c->row->rules[i]->name);
	buf_addc(c->why, '.');
	return false;
}

static bool
take_arguments(struct checking *c, const struct pyvalue *arguments)
{
	const struct pyvalue *argument = NULL;

	if (arguments != NULL)
		argument = arguments->u.parts.first;
	for (; argument != NULL; argument = argument->next)
		if (find_rule(c->row, argument) == NULL)
			return refuse_unknown(c, argument);
	for (size_t i = 0; c->row->rules[i] != NULL; i++) {
		const struct mcp_rule *rule = c->row->rules[i];
		const struct pyvalue *value = pyvalue_get(arguments,
		    rule->name);

		/* Some clients write null for an argument that they leave
		 * out. */
		if (value != NULL && value->type == PYVALUE_NULL)
			value = NULL;
		if (value == NULL && rule->required)
			return object_to(c, rule->name, "is missing.");
		if (rule->kind == MCP_RULE_INT)
			*(int64_t *)(void *)((char *)c->call +
			    rule->offset) = rule->standard;
		if (value != NULL && !take(c, rule, value))
			return false;
	}
	return true;
}

/* Rules that the table cannot state. */
static bool
check_rest(struct checking *c)
{
	const struct mcp_call *call = c->call;

	if (call->tool == MCP_WRITE_FILE && call->content.data == NULL)
		return object_to(c, "text", "is missing, or base64.");
	if ((call->tool == MCP_READ_FILE || call->tool == MCP_WRITE_FILE) &&
	    call->path.len == 0)
		return object_to(c, "path", "must name a file.");
	if (call->python.data != NULL && call->session.data != NULL)
		return object_to(c, "python",
		    "belongs to create_session where there is a session.");
	return true;
}

enum mcp_verdict
mcp_call_parse(struct mcp_call *call, struct mcp_message *m,
    const char *const *interpreters, struct mcp_fault *fault, struct buf *why)
{
	const struct pyvalue *name = pyvalue_get(m->params, "name");
	const struct pyvalue *arguments = pyvalue_get(m->params, "arguments");
	struct checking c = { call, m, NULL, interpreters, why };
	size_t i = 0;

	*call = (struct mcp_call){ .path = { .data = "" } };
	if (name == NULL || name->type != PYVALUE_STRING ||
	    (arguments != NULL && arguments->type != PYVALUE_OBJECT)) {
		(void)mcp_refuse(fault, m, 400, MCP_BAD_PARAMS,
		    "Invalid params: name must be a string, arguments an "
		    "object");
		return MCP_CALL_FAULT;
	}
	while (i < MCP_TOOLS && !pyvalue_is(name, rows[i].name))
		i++;
	if (i == MCP_TOOLS) {
		(void)mcp_refuse(fault, m, 400, MCP_BAD_PARAMS,
		    "Unknown tool: %.200s", name->u.text);
		return MCP_CALL_FAULT;
	}
	call->tool = (enum mcp_tool)i;
	c.row = &rows[i];
	return take_arguments(&c, arguments) && check_rest(&c) ?
	    MCP_CALL_FINE :
	    MCP_CALL_MENDABLE;
}
