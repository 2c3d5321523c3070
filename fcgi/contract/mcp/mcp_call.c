/* SPDX-License-Identifier: MIT */
/*
 * A call's arguments, checked by the table.  Whatever is wrong with them is
 * told the model in one line that says what to write instead.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../pytext/pyutf8.h"
#include "../base64.h"
#include "../stage.h"
#include "../path_text.h"
#include "mcp_message.h"
#include "mcp_table.h"
#include "mcp_tools.h"

#include "../../../sandbox/base/buf.h"
#include "../../../sandbox/protocol/frame_limits.h"

#define HOME "/workspace"

/* What is looked at. */
struct checking {
	struct mcp_call *call;
	struct mcp_message *m;
	const struct mcp_tool_row *row;
	const char *const *interpreters;
	struct buf *why;
};

/* Always false.  label: the argument, or a part of it. */
static bool object_to(struct checking *c, const char *label, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

static bool
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

static bool
is_long(const char *path)
{
	size_t longest = 0;

	for (const char *p = path; *p != '\0'; p += *p == '/') {
		size_t len = strcspn(p, "/");

		longest = len > longest ? len : longest;
		p += len;
	}
	return longest > LIMIT_NAME || strlen(path) > LIMIT_PATH;
}

/* A path that is too long may be one that was told with escapes. */
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
	bool up = false;
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
	if (up)
		return object_to(c, label, "must not hold '..'.");
	text_len = len;
	if (is_long(out))
		len = shorten(out, len);
	if (is_long(out))
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
		if (!mcp_is_text(value, c->interpreters[i]))
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
	const struct pyvalue *path = mcp_member(value, "path");
	const struct pyvalue *text = mcp_member(value, "text");
	const struct pyvalue *base64 = mcp_member(value, "base64");
	const struct pyvalue *id = mcp_member(value, "file_id");

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
	switch (stage_add(stage, path)) {
	case STAGE_FINE:
		return true;
	case STAGE_EMPTY:
		return object_to(c, label, "has a path that names no file.");
	case STAGE_LONG:
		return object_to(c, label, "has a name of over %d bytes.",
		    LIMIT_NAME);
	case STAGE_FULL:
		return object_to(c, label, "is one too many.");
	case STAGE_IS_FOLDER:
		return object_to(c, label,
		    "has the path of a folder that another file needs.");
	case STAGE_PARENT_IS_FILE:
	case STAGE_ABOVE_IS_FILE:
		break;
	}
	return object_to(c, label, "has a path below another file.");
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

/* One argument that is there. */
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

/* Nobody asked for it: a name that is misspelt would be passed over. */
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
		const struct pyvalue *value = mcp_member(arguments, rule->name);

		/* Some write null for what they leave out. */
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

/* What the table cannot say. */
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
	const struct pyvalue *name = mcp_member(m->params, "name");
	const struct pyvalue *arguments = mcp_member(m->params, "arguments");
	struct checking c = { call, m, NULL, interpreters, why };
	size_t i = 0;

	*call = (struct mcp_call){ .path = { .data = "" } };
	if (name == NULL || name->type != PYVALUE_STRING ||
	    (arguments != NULL && arguments->type != PYVALUE_OBJECT)) {
		(void)mcp_refuse_request(m, fault, 400, MCP_BAD_PARAMS,
		    "Invalid params: name must be a string, arguments an "
		    "object");
		return MCP_CALL_FAULT;
	}
	while (i < MCP_TOOLS && !mcp_is_text(name, mcp_tool_rows[i].name))
		i++;
	if (i == MCP_TOOLS) {
		(void)mcp_refuse_request(m, fault, 400, MCP_BAD_PARAMS,
		    "Unknown tool: %.200s", name->u.text);
		return MCP_CALL_FAULT;
	}
	call->tool = (enum mcp_tool)i;
	c.row = &mcp_tool_rows[i];
	return take_arguments(&c, arguments) && check_rest(&c) ?
	    MCP_CALL_FINE :
	    MCP_CALL_MENDABLE;
}
