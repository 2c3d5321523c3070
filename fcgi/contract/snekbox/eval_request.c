/* SPDX-License-Identifier: MIT */
/*
 * Refusals of /eval, the interpreter that a path means, and the steps of a
 * request in their order.
 */
#include "contract/snekbox/eval_request.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "contract/base64.h"
#include "contract/fields.h"
#include "contract/outcome.h"
#include "contract/semver.h"
#include "contract/stage.h"
#include "contract/jtext.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "protocol/frame_limits.h"

#define TITLE_INVALID "Request data failed validation"
#define TITLE_FILE "Request file is invalid"
#define TITLE_JSON "Invalid JSON"
#define NO_INTERPRETER "executable_path does not exist"
#define HOME "home"
#define FILE_MODE 0777
#define VALUE_MAX 1000	 /* bytes of a value that an error shows */
#define PATH_SHOWN 16000 /* code points of a path */

/* ---- errors ---- */

bool
eval_refuse(struct eval_refusal *refusal, int status, const char *title)
{
	*refusal = (struct eval_refusal){ status, title,
		BUF_INIT(EVAL_DESCRIPTION_MAX) };
	return false;
}

static bool __attribute__((format(printf, 4, 5)))
eval_refuse_with(struct eval_refusal *refusal, int status, const char *title,
    const char *fmt, ...)
{
	va_list ap;

	(void)eval_refuse(refusal, status, title);
	va_start(ap, fmt);
	buf_addv(&refusal->description, fmt, ap);
	va_end(ap);
	return false;
}

/* Refuse with 400: the value as Python writes it, where it is short, and
 * why. */
static bool
eval_refuse_value(struct eval_refusal *refusal, const json_t *value,
    const char *why)
{
	auto_buf struct buf text = BUF_INIT(VALUE_MAX);

	jtext_add(&text, value, 0);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '"' && (i == 0 || text.data[i - 1] != '\\'))
			text.data[i] = '\'';
	return eval_refuse_with(refusal, 400, TITLE_INVALID, "%s %s",
	    text.overflow ? "The value" : buf_str(&text), why);
}

/* Refuse with 400 for a member.  The tests of the original know these words for
 * a value of another type. */
static bool
eval_refuse_field(struct eval_refusal *refusal, const struct field_error *error)
{
	static const char *const types[] = {
		[FIELD_ANY] = "any",
		[FIELD_TEXT] = "is not of type 'string'",
		[FIELD_WORD] = "is not of type 'string'",
		[FIELD_INT] = "is not of type 'integer'",
		[FIELD_WHOLE] = "is not of type 'integer'",
		[FIELD_NUMBER] = "is not of type 'number'",
		[FIELD_BOOL] = "is not of type 'boolean'",
		[FIELD_LIST] = "is not of type 'array'",
		[FIELD_OBJECT] = "is not of type 'object'",
	};

	if (error->fault == FIELD_TYPE)
		return eval_refuse_value(refusal, error->value,
		    types[error->kind]);
	(void)eval_refuse(refusal, 400, TITLE_INVALID);
	field_error_add(&refusal->description, error);
	return false;
}

void
eval_refusal_add(struct buf *out, const struct eval_refusal *refusal)
{
	const struct buf *text = &refusal->description;

	buf_addf(out, "{\"title\": \"%s\"", refusal->title);
	if (text->len > 0)
		jtext_addf(out, JTEXT_UTF8, ", \"description\": \"%.*s\"",
		    (int)text->len, buf_str(text));
	buf_addc(out, '}');
}

/* ---- the interpreter that a path means ---- */

#define PYTHONS "snekbin/python/"
#define PROGRAM "/bin/python"
#define DIGITS "0123456789."
#define BUILDS "tj" /* without the GIL; with the JIT */

/* The name in the path of an interpreter, heap: "3.13" of
 * snekbin/python/3.13/bin/python3.  NULL: it is another path. */
static char *
read_interpreter(const char *path)
{
	const char *name = path + strlen(PYTHONS);
	const char *version;
	size_t len;

	if (strncmp(path, PYTHONS, strlen(PYTHONS)) != 0)
		return NULL;
	len = strcspn(name, "/");
	if (strncmp(name + len, PROGRAM, strlen(PROGRAM)) != 0)
		return NULL;
	version = name + len + strlen(PROGRAM);
	if (version[0] != '\0' && strcmp(version, "3") != 0 &&
	    (strlen(version) != len || memcmp(version, name, len) != 0))
		return NULL;
	return xstrndup(name, len);
}

/* The interpreter that stands in for one that is not there: the nearest of
 * names to a version ("3.15"), or to that of a free-threaded or a JIT build
 * ("3.14t", "3.14j").  NULL: the name is no such version. */
static const char *
find_nearest(const char *const *names, const char *name)
{
	size_t digits = strspn(name, DIGITS);
	const char *found = NULL;
	struct semver wanted;
	struct semver best;

	if (strlen(name) > digits + 1 || strchr(BUILDS, name[digits]) == NULL ||
	    !semver_read_wanted(&wanted, name, digits))
		return NULL;
	for (size_t i = 0; names[i] != NULL; i++) {
		struct semver version;

		digits = strspn(names[i], DIGITS);
		/* Only plain builds count: "3.14", "3.14-scientific". */
		if ((names[i][digits] != '\0' && names[i][digits] != '-') ||
		    !semver_read_wanted(&version, names[i], digits) ||
		    !semver_is_nearer(&version, found == NULL ? NULL : &best,
			&wanted))
			continue;
		best = version;
		found = names[i];
	}
	return found;
}

/* ---- the body ---- */

struct eval_file {
	struct cell_bytes path;
	struct cell_bytes content;
};

struct eval_body {
	struct cell_bytes input;
	struct field_list args;
	struct field_list files;
	struct cell_bytes executable;
	struct cell_bytes stdin_text;
	int64_t timeout_ms;
};

static const struct field file_rows[] = {
	{ "path", FIELD_TEXT, offsetof(struct eval_file, path),
	    .required = true },
	{ "content", FIELD_TEXT, offsetof(struct eval_file, content),
	    .required = false },
	{ .name = NULL },
};

/* The last two are ours. */
static const struct field body_rows[] = {
	{ "input", FIELD_TEXT, offsetof(struct eval_body, input),
	    .required = false },
	{ "args", FIELD_LIST, offsetof(struct eval_body, args),
	    .required = false },
	{ "files", FIELD_LIST, offsetof(struct eval_body, files),
	    .items = file_rows, .size = sizeof(struct eval_file) },
	{ "executable_path", FIELD_TEXT, offsetof(struct eval_body, executable),
	    .required = false },
	{ "stdin", FIELD_TEXT, offsetof(struct eval_body, stdin_text),
	    .required = false },
	{ "timeout_ms", FIELD_INT, offsetof(struct eval_body, timeout_ms),
	    .min = 1, .max = OUTCOME_TIMEOUT_MAX_MS },
	{ .name = NULL },
};

/* Parse a body that is JSON by its Content-Type, or has none. */
static bool
eval_parse_json(struct jtree *doc, const char *type, const char *body,
    size_t len, struct eval_refusal *refusal)
{
	struct jtree_error error;

	if (type != NULL && type[0] != '\0' && !fields_is_json(type))
		return eval_refuse_with(refusal, 415,
		    "415 Unsupported Media Type",
		    "%s is an unsupported media type.", type);
	if (len == 0)
		return eval_refuse_with(refusal, 400, TITLE_JSON,
		    "The body is empty: send its Content-Length with it.");
	if (jtree_parse(doc, body, len, &error))
		return true;
	return eval_refuse_with(refusal, 400, TITLE_JSON,
	    "The body is no JSON: %s", error.text);
}

/* Check that a path does not begin with '/', has no backslash with a zero, and
 * no line feed but at its end. */
static bool
eval_check_path(const struct cell_bytes *path, size_t i,
    struct eval_refusal *refusal)
{
	const char *feed = memchr(path->data, '\n', path->len);

	return (path->data[0] != '/' &&
		   memmem(path->data, path->len, "\\0", 2) == NULL &&
		   (feed == NULL || feed == path->data + path->len - 1)) ||
	    eval_refuse_with(refusal, 400, TITLE_INVALID,
		"files[%zu].path does not match what is allowed: it must be "
		"relative, without line feeds and without \\0.",
		i);
}

/* Read the body, and check what its table cannot. */
static bool
eval_read_body(struct eval_request *req, struct eval_body *body,
    struct eval_refusal *refusal)
{
	const json_t *root = req->doc.root;
	const struct eval_file *files;
	struct field_error error;

	if (!fields_read(&req->doc, body_rows, root, body, &error))
		return eval_refuse_field(refusal, &error);
	if (body->input.data == NULL && body->args.items == NULL)
		return eval_refuse_value(refusal, root,
		    "is not valid under any of the given schemas");
	files = body->files.items;
	for (size_t i = 0; i < body->files.count; i++)
		if (!eval_check_path(&files[i].path, i, refusal))
			return false;
	req->input = body->stdin_text.data;
	req->input_len = body->stdin_text.len;
	req->timeout_ms = body->timeout_ms;
	return true;
}

/* ---- the interpreter ---- */

/* Find the interpreter that a path means, or the one that stands in for it. */
static bool
choose_interpreter(struct eval_request *req, const char *const *names,
    bool fallback, const struct cell_bytes *path, struct eval_refusal *refusal)
{
	auto_free char *name = NULL;
	enum stage_up up;
	char *out;

	if (path->len == 0)
		return true;
	if (path->data[0] != '/' || strlen(path->data) != path->len)
		return eval_refuse(refusal, 400, NO_INTERPRETER);
	out = jtree_array(&req->doc, path->len + 2, 1);
	(void)stage_resolve(path->data, path->len, out, 0, &up);
	name = read_interpreter(out);
	if (name == NULL)
		return eval_refuse(refusal, 400, NO_INTERPRETER);
	for (size_t i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], name) == 0)
			req->interpreter = names[i];
	if (req->interpreter != NULL || strcmp(name, "default") == 0)
		return true;
	req->interpreter = fallback ? find_nearest(names, name) : NULL;
	req->stands_in = req->interpreter != NULL;
	return req->stands_in || eval_refuse(refusal, 400, NO_INTERPRETER);
}

/* ---- files ---- */

/* Refuse a file: its path, as it was sent, stands between two texts. */
static bool
eval_refuse_file(struct eval_refusal *refusal, const char *before,
    const struct cell_bytes *path, const char *after)
{
	(void)eval_refuse_with(refusal, 400, TITLE_FILE, "%s", before);
	buf_add(&refusal->description, path->data,
	    text_prefix(path->data, path->len, PATH_SHOWN));
	buf_adds(&refusal->description, after);
	return false;
}

/* Resolve what the path means in /home, by its text alone: what leaves it, and
 * what no file system takes, is refused. */
static bool
eval_resolve_path(struct eval_request *req, struct cell_input *file,
    const struct cell_bytes *path, struct eval_refusal *refusal)
{
	size_t home = strlen(HOME);
	enum stage_up up;
	char *out = jtree_array(&req->doc, sizeof(HOME) + path->len + 1, 1);

	memcpy(out, HOME, sizeof(HOME));
	(void)stage_resolve(path->data, path->len, out, home, &up);
	file->always = up != STAGE_DOWN;
	if (strlen(path->data) != path->len || strncmp(out, HOME, home) != 0 ||
	    (out[home] != '/' && out[home] != '\0'))
		return eval_refuse_file(refusal, "File path '", path,
		    "' may not traverse beyond root");
	/* "home/a" becomes "a", and "home" becomes "". */
	file->path = out + home + (out[home] == '/' ? 1 : 0);
	return true;
}

/* Read paths and contents, which are decoded where they lie.  When they cannot
 * be written one after the other, the refusal's description is what the run
 * "printed". */
static bool
eval_read_files(struct eval_request *req, const struct field_list *list,
    struct eval_refusal *refusal)
{
	static const char *const classes[] = {
		[STAGE_FINE] = "",
		[STAGE_EMPTY] = "IsADirectoryError",
		[STAGE_LONG] = "OSError",
		[STAGE_FULL] = "OSError",
		[STAGE_IS_FOLDER] = "IsADirectoryError",
		[STAGE_PARENT_IS_FILE] = "FileExistsError",
		[STAGE_ABOVE_IS_FILE] = "NotADirectoryError",
	};
	auto_stage struct stage stage = { .count = 0 };
	const struct eval_file *files = list->items;

	req->inputs = jtree_array(&req->doc, list->count + 1,
	    sizeof(*req->inputs));
	for (size_t i = 0; i < list->count; i++) {
		struct cell_input *file = &req->inputs[req->input_count++];
		struct cell_bytes content = files[i].content;
		enum stage_outcome outcome;

		file->mode = FILE_MODE;
		file->mtime = -1;
		if (!eval_resolve_path(req, file, &files[i].path, refusal))
			return false;
		if (content.data == NULL)
			content.data = "";
		else if (!base64_decode(content.data, content.len, true,
			     (char *)(uintptr_t)content.data, &content.len))
			return eval_refuse_file(refusal,
			    "Invalid base64 encoding for file '",
			    &files[i].path, "'");
		file->content = content;
		outcome = stage_add(&stage, file->path);
		if (outcome != STAGE_FINE)
			return eval_refuse_with(refusal, 200, "",
			    "%s: Failed to create file '%.*s'.",
			    classes[outcome],
			    (int)text_prefix(files[i].path.data,
				files[i].path.len, PATH_SHOWN),
			    files[i].path.data);
	}
	return true;
}

/* ---- arguments ---- */

/* Add an argument.  Empty ones at the beginning do not count.  A NUL is
 * refused, since no program can be started with it. */
static bool
eval_add_argument(struct eval_request *req, const struct cell_bytes *arg,
    struct eval_refusal *refusal)
{
	if (arg->len == 0 && req->word_count == 0)
		return true;
	req->words[req->word_count++] = *arg;
	return strlen(arg->data) == arg->len ||
	    eval_refuse_with(refusal, 200, "",
		"ValueError: embedded null byte");
}

/* Add `args`, or -c, then `input`. */
static bool
add_arguments(struct eval_request *req, const struct eval_body *body,
    struct eval_refusal *refusal)
{
	const struct cell_bytes *args = body->args.items;

	req->words = jtree_array(&req->doc, body->args.count + 2,
	    sizeof(*req->words));
	if (args == NULL)
		req->words[req->word_count++] = (struct cell_bytes){ "-c", 2 };
	for (size_t i = 0; i < body->args.count; i++)
		if (!eval_add_argument(req, &args[i], refusal))
			return false;
	return body->input.data == NULL ||
	    eval_add_argument(req, &body->input, refusal);
}

/* Is it short enough for the cell? */
static bool
check_length(const struct eval_request *req, struct eval_refusal *refusal)
{
	size_t total = 0;

	for (size_t i = 0; i < req->word_count; i++)
		total += req->words[i].len + 1;
	return (total <= LIMIT_PART && req->input_len <= LIMIT_PART) ||
	    eval_refuse_with(refusal, 413, "413 Content Too Large", "%s",
		EVAL_TOO_LONG);
}

bool
eval_parse(struct eval_request *req, const char *const *interpreters,
    bool fallback, const char *content_type, const char *text, size_t len,
    struct eval_refusal *refusal)
{
	struct eval_body body = { .timeout_ms = 0 };

	memset(req, 0, sizeof(*req));
	if (!eval_parse_json(&req->doc, content_type, text, len, refusal))
		return false;
	if (eval_read_body(req, &body, refusal) &&
	    choose_interpreter(req, interpreters, fallback, &body.executable,
		refusal) &&
	    eval_read_files(req, &body.files, refusal) &&
	    add_arguments(req, &body, refusal) && check_length(req, refusal))
		return true;
	jtree_release(&req->doc);
	return false;
}
