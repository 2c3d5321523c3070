/* SPDX-License-Identifier: MIT */
/*
 * The list of the tools that clients get, and a call's arguments, checked by
 * it.  The model is told of a wrong argument in one line, which says what to
 * write instead.
 */
#include "contract/mcp/mcp_tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "contract/json.h"
#include "contract/mcp/mcp_message.h"
#include "contract/run_files.h"

#include "base/basics.h"
#include "protocol/frame_limits.h"

#define HOME "/workspace"

/* Arguments of which the fields' table does not say all. */
enum mcp_role {
	MCP_PLAIN,
	MCP_PATH,
	MCP_BASE64,
	MCP_PYTHON,
	MCP_ARGS,
	MCP_FILES,
};

/* An argument, and its place in struct mcp_call.  mcp_list.json says which
 * tools have it, whether it is required, and the bounds of numbers and
 * lists. */
struct mcp_rule {
	struct field field;
	enum mcp_role role;
};

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

static const struct mcp_rule rules[] = {
	{ { ARGUMENT("code", FIELD_TEXT, code), .max = TEXT_MAX }, MCP_PLAIN },
	{ { ARGUMENT("command", FIELD_WORD, code), .max = MCP_COMMAND_MAX },
	    MCP_PLAIN },
	{ { ARGUMENT("stdin", FIELD_TEXT, input), .max = TEXT_MAX },
	    MCP_PLAIN },
	{ { ARGUMENT("files", FIELD_LIST, files), .items = file_rows,
	      .size = sizeof(struct mcp_file) },
	    MCP_FILES },
	{ { ARGUMENT("args", FIELD_LIST, args) }, MCP_ARGS },
	{ { ARGUMENT("python", FIELD_WORD, python) }, MCP_PYTHON },
	{ { ARGUMENT("timeout_seconds", FIELD_WHOLE, timeout_s) }, MCP_PLAIN },
	{ { ARGUMENT("session", FIELD_WORD, session), .max = 256 }, MCP_PLAIN },
	{ { ARGUMENT("ttl_seconds", FIELD_WHOLE, ttl_s) }, MCP_PLAIN },
	{ { ARGUMENT("path", FIELD_WORD, path) }, MCP_PATH },
	{ { ARGUMENT("offset", FIELD_WHOLE, offset) }, MCP_PLAIN },
	{ { ARGUMENT("limit", FIELD_WHOLE, limit) }, MCP_PLAIN },
	{ { ARGUMENT("text", FIELD_TEXT, content), .max = TEXT_MAX },
	    MCP_PLAIN },
	{ { ARGUMENT("base64", FIELD_TEXT, base64) }, MCP_BASE64 },
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

/* ---- the list ---- */

/* mcp_list.json */
extern const char mcp_list[];
extern const size_t mcp_list_len;

/* The values that the tool's argument `python` may have; NULL: it has none. */
static json_t *
pythons_of(const json_t *tool)
{
	const json_t *schema = json_object_get(tool, "inputSchema");
	const json_t *properties = json_object_get(schema, "properties");

	return json_object_get(json_object_get(properties, "python"), "enum");
}

json_t *
mcp_tools_read(const char *const *interpreters)
{
	json_t *tools = json_loadb(mcp_list, mcp_list_len, 0, NULL);
	const json_t *tool;
	size_t i;

	json_array_foreach(tools, i, tool)
		for (size_t n = 0; interpreters[n] != NULL; n++)
			(void)json_array_append_new(pythons_of(tool),
			    json_string(interpreters[n]));
	return tools;
}

void
mcp_add_tools(struct buf *out, const json_t *tools)
{
	jtext_add(out, tools, JSON_COMPACT | JSON_ENSURE_ASCII);
}

/* ---- a call ---- */

/* A call whose arguments are checked. */
struct checking {
	struct mcp_call *call;
	struct mcp_message *m;
	const json_t *tool; /* its name and schema, as clients have them */
	struct buf *why;
};

static const char *
name_of(const struct checking *c)
{
	return json_string_value(json_object_get(c->tool, "name"));
}

/* Refuse an argument.  Always false.  label: its name, or a part of it. */
static bool __attribute__((format(printf, 3, 4)))
refuse_argument(struct checking *c, const char *label, const char *fmt, ...)
{
	va_list ap;

	buf_addf(c->why, "%s: argument %s ", name_of(c), label);
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
	const json_t *names = pythons_of(c->tool);
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name)
		if (jtree_is(name, c->call->python.data))
			return true;
	(void)refuse_argument(c, "python", "must be one of");
	json_array_foreach(names, i, name)
		buf_addf(c->why, "%s \"%s\"", i == 0 ? "" : ",",
		    json_string_value(name));
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
check_names(struct checking *c, json_t *properties, json_t *arguments)
{
	const char *wrong = NULL;
	const char *comma = "";
	const char *name;
	const json_t *value;

	json_object_foreach(arguments, name, value)
		if (wrong == NULL && json_object_get(properties, name) == NULL)
			wrong = name;
	if (wrong == NULL)
		return true;
	buf_addf(c->why, "%s: there is no argument '%.60s'; there are",
	    name_of(c), wrong);
	json_object_foreach(properties, name, value) {
		buf_addf(c->why, "%s %s", comma, name);
		comma = ",";
	}
	buf_addc(c->why, '.');
	return false;
}

/* Complete a row by what the schema says. */
static void
complete_field(struct field *field, const json_t *property,
    const json_t *required)
{
	const char *const most = field->kind == FIELD_LIST ? "maxItems" :
							     "maximum";
	const json_t *name;
	size_t i;

	field->min = json_integer_value(json_object_get(property, "minimum"));
	field->standard = json_integer_value(json_object_get(property,
	    "default"));
	if (field->max == 0)
		field->max = json_integer_value(json_object_get(property,
		    most));
	json_array_foreach(required, i, name)
		field->required |= jtree_is(name, field->name);
}

/* Some clients write null for an argument that they leave out. */
static bool
mcp_read_arguments(struct checking *c, json_t *arguments)
{
	const json_t *schema = json_object_get(c->tool, "inputSchema");
	json_t *properties = json_object_get(schema, "properties");
	struct field_error error;

	if (!check_names(c, properties, arguments))
		return false;
	for (size_t i = 0; i < RULES; i++) {
		struct field field = rules[i].field;
		const json_t *value = json_object_get(arguments, field.name);
		const json_t *property = json_object_get(properties,
		    field.name);

		if (property == NULL)
			continue;
		complete_field(&field, property,
		    json_object_get(schema, "required"));
		if (!field_read(&c->m->doc, &field, arguments, c->call,
			&error)) {
			buf_addf(c->why, "%s: argument ", name_of(c));
			field_error_add(c->why, &error);
			buf_addc(c->why, '.');
			return false;
		}
		if (!jtree_is_absent(value) && !check_role(c, &rules[i], value))
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
    const json_t *tools, struct mcp_fault *fault, struct buf *why)
{
	const json_t *name = json_object_get(m->params, "name");
	json_t *arguments = json_object_get(m->params, "arguments");
	struct checking c = { call, m, NULL, why };
	const json_t *tool;
	size_t i;

	*call = (struct mcp_call){ .path = { .data = "" } };
	if (!json_is_string(name) ||
	    (arguments != NULL && !json_is_object(arguments))) {
		(void)mcp_refuse(fault, m, 400, MCP_BAD_PARAMS,
		    "Invalid params: name must be a string, arguments an "
		    "object");
		return MCP_CALL_FAULT;
	}
	json_array_foreach(tools, i, tool) {
		if (!json_equal(json_object_get(tool, "name"), name))
			continue;
		call->tool = (enum mcp_tool)i;
		c.tool = tool;
	}
	if (c.tool == NULL) {
		(void)mcp_refuse(fault, m, 400, MCP_BAD_PARAMS,
		    "Unknown tool: %.200s", json_string_value(name));
		return MCP_CALL_FAULT;
	}
	return mcp_read_arguments(&c, arguments) && check_together(&c) ?
	    MCP_CALL_FINE :
	    MCP_CALL_MENDABLE;
}
