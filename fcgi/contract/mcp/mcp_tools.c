/* SPDX-License-Identifier: MIT */
/*
 * The list of the tools that clients get, and a call's arguments, checked by
 * it.  One line says to the model which argument is wrong, and what to write
 * instead.
 */
#include "contract/mcp/mcp_tools.h"

#include <stdio.h>
#include <string.h>

#include "contract/json.h"
#include "contract/mcp/mcp_message.h"
#include "contract/run_files.h"

#include "base/basics.h"
#include "protocol/frame_limits.h"

#define HOME "/workspace"
#define SESSION_MAX 256

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

/* Arguments and their places.  mcp_list.json says which tools have them,
 * whether they are required, and the bounds of numbers and lists.  Some clients
 * write null for an argument that they leave out. */
#define ARGUMENT(name, kind, member) \
	name, kind, offsetof(struct mcp_call, member), .nullable = true
static const struct field rows[] = {
	{ ARGUMENT("code", FIELD_TEXT, code) },
	{ ARGUMENT("command", FIELD_WORD, code), .max = MCP_COMMAND_MAX },
	{ ARGUMENT("stdin", FIELD_TEXT, input) },
	{ ARGUMENT("files", FIELD_LIST, files), .items = file_rows,
	    .size = sizeof(struct mcp_file) },
	{ ARGUMENT("args", FIELD_LIST, args) },
	{ ARGUMENT("python", FIELD_WORD, python) },
	{ ARGUMENT("timeout_seconds", FIELD_WHOLE, timeout_s) },
	{ ARGUMENT("session", FIELD_WORD, session), .max = SESSION_MAX },
	{ ARGUMENT("ttl_seconds", FIELD_WHOLE, ttl_s) },
	{ ARGUMENT("path", FIELD_WORD, file.path) },
	{ ARGUMENT("offset", FIELD_WHOLE, offset) },
	{ ARGUMENT("limit", FIELD_WHOLE, limit) },
	{ ARGUMENT("text", FIELD_TEXT, file.content) },
	{ ARGUMENT("base64", FIELD_TEXT, file.base64) },
};

/* ---- the list ---- */

/* mcp_list.json */
extern const char mcp_list[];
extern const size_t mcp_list_len;

/* The tool's arguments, as JSON Schema has them. */
static json_t *
properties_of(const json_t *tool)
{
	return json_object_get(json_object_get(tool, "inputSchema"),
	    "properties");
}

/* The values that the tool's argument `python` may have; NULL: it has none. */
static json_t *
pythons_of(const json_t *tool)
{
	return json_object_get(json_object_get(properties_of(tool), "python"),
	    "enum");
}

static json_t *
tools_of(const json_t *list)
{
	return json_object_get(json_object_get(list, "tools/list"), "tools");
}

json_t *
mcp_list_read(const char *const *interpreters)
{
	json_t *list = json_loadb(mcp_list, mcp_list_len, 0, NULL);
	const json_t *tool;
	size_t i;

	json_array_foreach(tools_of(list), i, tool)
		for (size_t n = 0; interpreters[n] != NULL; n++)
			(void)json_array_append_new(pythons_of(tool),
			    json_string(interpreters[n]));
	return list;
}

/* ---- values ---- */

/* A call whose arguments are checked. */
struct checking {
	struct mcp_call *call;
	struct jtree *doc;
	const json_t *tool; /* its name and schema, as clients have them */
	struct buf *why;
};

/* Refuse an argument.  Always false.  label: its name, or a part of it. */
static bool __attribute__((format(printf, 3, 4)))
refuse_argument(struct checking *c, const char *label, const char *fmt, ...)
{
	va_list ap;

	buf_addf(c->why, "argument %s ", label);
	va_start(ap, fmt);
	buf_addv(c->why, fmt, ap);
	va_end(ap);
	return false;
}

static size_t
count_sources(const struct mcp_file *file)
{
	return (size_t)(file->content.data != NULL) +
	    (file->base64.data != NULL) + (file->id.data != NULL);
}

static bool
mcp_decode_content(struct checking *c, const char *label, struct mcp_file *file)
{
	char *data;
	size_t len;

	if (file->base64.data == NULL)
		return true;
	data = jtree_array(c->doc, file->base64.len + 1, 1);
	if (!base64_decode(file->base64.data, file->base64.len, true, data,
		&len))
		return refuse_argument(c, label,
		    "must be base64, with its padding.");
	data[len] = '\0';
	file->content = (struct cell_bytes){ data, len };
	return true;
}

/* Resolve a path below the folder of the run; absolute ones of that folder are
 * meant so, too.  The escapes of a path that is too long are undone. */
static bool
resolve_file(struct checking *c, const char *label, struct mcp_file *file)
{
	const size_t home = strlen(HOME);
	auto_buf struct buf real = BUF_INIT(file->path.len + 1);
	const char *path = file->path.data;
	enum stage_up up;
	char *out;

	if (strncmp(path, HOME, home) == 0 &&
	    (path[home] == '/' || path[home] == '\0'))
		path += home;
	else if (path[0] == '/')
		return refuse_argument(c, label,
		    "must be relative to the folder of the run, " HOME ".");
	out = jtree_array(c->doc, strlen(path) + 2, 1);
	(void)stage_resolve(path, strlen(path), out, 0, &up);
	if (up != STAGE_DOWN)
		return refuse_argument(c, label, "must not hold '..'.");
	file->decoded = stage_is_long(out) && path_text_read(&real, out);
	if (file->decoded)
		memcpy(out, buf_str(&real), real.len + 1);
	if (stage_is_long(out))
		return refuse_argument(c, label,
		    "must have at most %d bytes, and %d between two '/'.",
		    LIMIT_PATH, LIMIT_NAME);
	file->path = (struct cell_bytes){ out, strlen(out) };
	return true;
}

/* ---- arguments that the table cannot check ---- */

static bool
mcp_check_file(struct checking *c)
{
	struct mcp_file *file = &c->call->file;
	bool writes = c->call->tool == MCP_WRITE_FILE;

	if (!resolve_file(c, "path", file))
		return false;
	if ((writes || c->call->tool == MCP_READ_FILE) && file->path.len == 0)
		return refuse_argument(c, "path", "must name a file.");
	if (writes && count_sources(file) != 1)
		return refuse_argument(c, "text",
		    "or base64 must be given, and not both.");
	return mcp_decode_content(c, "base64", file);
}

static bool
check_python(struct checking *c)
{
	const struct mcp_call *call = c->call;
	const json_t *names = pythons_of(c->tool);
	bool known = call->python.data == NULL;
	const json_t *name;
	size_t i;

	if (!known && call->session.data != NULL)
		return refuse_argument(c, "python",
		    "belongs to create_session where there is a session.");
	json_array_foreach(names, i, name)
		known = known || jtree_is(name, call->python.data);
	if (known)
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

	if (args == NULL)
		return true;
	call->argv = jtree_array(c->doc, call->args.count + 1,
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

/* The files are to be written one after the other. */
static bool
check_files(struct checking *c, const json_t *sent)
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
	auto_stage struct stage stage = { .count = 0 };
	struct mcp_file *files = c->call->files.items;
	enum stage_outcome outcome;
	char label[32];

	_Static_assert(LIMIT_NAME == 255, "as the text says");
	for (size_t i = 0; i < c->call->files.count; i++) {
		(void)snprintf(label, sizeof(label), "files[%zu]", i);
		if (count_sources(&files[i]) != 1 ||
		    json_object_size(json_array_get(sent, i)) != 2)
			return refuse_argument(c, label,
			    "must have path, exactly one of text, base64 and "
			    "file_id, and nothing else.");
		if (!resolve_file(c, label, &files[i]) ||
		    !mcp_decode_content(c, label, &files[i]))
			return false;
		outcome = stage_add(&stage, files[i].path.data);
		if (outcome != STAGE_FINE)
			return refuse_argument(c, label, "%s", wrong[outcome]);
	}
	return true;
}

/* ---- all of them ---- */

/* Refuse an argument that the tool does not have: it may be a misspelt one. */
static bool
check_names(struct checking *c, json_t *arguments)
{
	json_t *properties = properties_of(c->tool);
	const char *wrong = NULL;
	const char *comma = "";
	const char *name;
	const json_t *value;

	json_object_foreach(arguments, name, value)
		if (wrong == NULL && json_object_get(properties, name) == NULL)
			wrong = name;
	if (wrong == NULL)
		return true;
	buf_addf(c->why, "there is no argument '%.60s'; there are", wrong);
	json_object_foreach(properties, name, value) {
		buf_addf(c->why, "%s %s", comma, name);
		comma = ",";
	}
	buf_addc(c->why, '.');
	return false;
}

/* Complete a row by what the schema says. */
static struct field
complete_row(const struct field *row, const json_t *tool)
{
	const json_t *schema = json_object_get(tool, "inputSchema");
	const json_t *property = json_object_get(properties_of(tool),
	    row->name);
	struct field field = *row;
	const json_t *name;
	size_t i;

	field.min = json_integer_value(json_object_get(property, "minimum"));
	field.standard = json_integer_value(json_object_get(property,
	    "default"));
	if (field.max == 0)
		field.max = json_integer_value(json_object_get(property,
		    field.kind == FIELD_LIST ? "maxItems" : "maximum"));
	json_array_foreach(json_object_get(schema, "required"), i, name)
		field.required |= jtree_is(name, field.name);
	return field;
}

static bool
read_arguments(struct checking *c, json_t *arguments)
{
	struct field_error error;

	if (!check_names(c, arguments))
		return false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct field field = complete_row(&rows[i], c->tool);

		if (json_object_get(properties_of(c->tool), field.name) ==
			NULL ||
		    field_read(c->doc, &field, arguments, c->call, &error))
			continue;
		buf_adds(c->why, "argument ");
		field_error_add(c->why, &error);
		buf_addc(c->why, '.');
		return false;
	}
	return mcp_check_file(c) && check_python(c) && check_args(c) &&
	    check_files(c, json_object_get(arguments, "files"));
}

bool
mcp_call_parse(struct mcp_call *call, struct mcp_message *m, const json_t *list,
    struct buf *why)
{
	const json_t *name = json_object_get(m->params, "name");
	json_t *arguments = json_object_get(m->params, "arguments");
	struct checking c = { call, &m->doc, NULL, why };
	const json_t *tool;
	size_t i;

	*call = (struct mcp_call){ .file.path.data = "" };
	if (!json_is_string(name) ||
	    (arguments != NULL && !json_is_object(arguments)))
		return mcp_refuse(m, 400, MCP_BAD_PARAMS, NULL,
		    "Invalid params: name must be a string, arguments an "
		    "object");
	json_array_foreach(tools_of(list), i, tool) {
		if (!json_equal(json_object_get(tool, "name"), name))
			continue;
		call->tool = (enum mcp_tool)i;
		c.tool = tool;
	}
	if (c.tool == NULL)
		return mcp_refuse(m, 400, MCP_BAD_PARAMS, NULL,
		    "Unknown tool: %.200s", json_string_value(name));
	buf_addf(why, "%s: ", json_string_value(name));
	return read_arguments(&c, arguments);
}
