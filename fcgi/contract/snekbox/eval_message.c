/* SPDX-License-Identifier: MIT */
#include "contract/snekbox/eval_message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "contract/semver.h"

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "protocol/frame_limits.h"

#define TITLE_INVALID "Request data failed validation"
#define TITLE_FILE "Request file is invalid"
#define TITLE_JSON "Invalid JSON"
#define HOME "home"
#define FILE_MODE 0777
#define DESCRIPTION_MAX ((size_t)1 << 17) /* bytes */
#define VALUE_MAX 1000	 /* bytes of a value that an error shows */
#define PATH_SHOWN 16000 /* code points of a path */
/* A path as it was sent, up to a NUL, for "%.*s". */
#define SHOWN(path) \
	(int)text_prefix((path)->data, (path)->len, PATH_SHOWN), (path)->data

/* ---- errors ---- */

bool
eval_refuse(struct eval_refusal *refusal, int status, const char *title,
    const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(DESCRIPTION_MAX);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	*refusal = (struct eval_refusal){ status,
		BUF_INIT(8 * DESCRIPTION_MAX) };
	if (status == 200)
		buf_adds(&refusal->body, buf_str(&text));
	else
		jtext_addf(&refusal->body, JTEXT_UTF8,
		    text.len > 0 ?
			"{\"title\": \"%s\", \"description\": \"%s\"}" :
			"{\"title\": \"%s\"%s}",
		    title, buf_str(&text));
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
	return eval_refuse(refusal, 400, TITLE_INVALID, "%s %s",
	    text.overflow ? "The value" : buf_str(&text), why);
}

/* Refuse with 400 for a member.  The tests of the original know these words for
 * a value of another type. */
static bool
eval_refuse_field(struct eval_refusal *refusal, const struct field_error *error)
{
	auto_buf struct buf text = BUF_INIT(DESCRIPTION_MAX);
	static const char *const types[] = {
		[JSON_STRING] = "is not of type 'string'",
		[JSON_INTEGER] = "is not of type 'integer'",
		[JSON_ARRAY] = "is not of type 'array'",
		[JSON_OBJECT] = "is not of type 'object'",
	};

	if (error->fault == FIELD_TYPE)
		return eval_refuse_value(refusal, error->value,
		    types[error->type]);
	field_error_add(&text, error);
	return eval_refuse(refusal, 400, TITLE_INVALID, "%s", buf_str(&text));
}

/* ---- the interpreter ---- */

#define DIGITS "0123456789."
#define BUILDS "tj" /* without the GIL; with the JIT */

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

/* Find the interpreter that a path means, "3.13" of
 * /snekbin/python/3.13/bin/python3, or the one that stands in for it. */
static bool
eval_find_interpreter(struct eval_request *req, const char *const *names,
    bool fallback)
{
	const struct cell_bytes *path = &req->executable;
	auto_free char *name = NULL;
	enum stage_up up;
	int end = 0;
	char *out;

	if (path->len == 0)
		return true;
	if (path->data[0] != '/' || strlen(path->data) != path->len)
		return false;
	out = jtree_array(&req->doc, path->len + 2, 1);
	(void)stage_resolve(path->data, path->len, out, 0, &up);
	if (sscanf(out, "snekbin/python/%m[^/]/bin/python%n", &name, &end) !=
		1 ||
	    end == 0 ||
	    (out[end] != '\0' && strcmp(out + end, "3") != 0 &&
		strcmp(out + end, name) != 0))
		return false;
	for (size_t i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], name) == 0)
			req->interpreter = names[i];
	if (req->interpreter != NULL || strcmp(name, "default") == 0)
		return true;
	req->interpreter = fallback ? find_nearest(names, name) : NULL;
	req->stands_in = req->interpreter != NULL;
	return req->stands_in;
}

/* ---- the body ---- */

struct eval_file {
	struct cell_bytes path;
	struct cell_bytes content;
};

static const struct field file_rows[] = {
	{ "path", FIELD_TEXT, offsetof(struct eval_file, path),
	    .required = true },
	{ "content", FIELD_TEXT, offsetof(struct eval_file, content),
	    .required = false },
	{ .name = NULL },
};

/* The last two are ours. */
#define AT(member) offsetof(struct eval_request, member)
static const struct field body_rows[] = {
	{ "input", FIELD_TEXT, AT(code), .required = false },
	{ "args", FIELD_LIST, AT(args), .required = false },
	{ "files", FIELD_LIST, AT(files), .items = file_rows,
	    .size = sizeof(struct eval_file) },
	{ "executable_path", FIELD_TEXT, AT(executable), .required = false },
	{ "stdin", FIELD_TEXT, AT(input), .required = false },
	{ "timeout_ms", FIELD_INT, AT(timeout_ms), .min = 1,
	    .max = OUTCOME_TIMEOUT_MAX_MS },
	{ .name = NULL },
};

/* Parse a body that is JSON by its Content-Type, or has none. */
static bool
eval_parse_json(struct jtree *doc, const char *type, const char *body,
    size_t len, struct eval_refusal *refusal)
{
	struct jtree_error error;

	if (type != NULL && type[0] != '\0' && !fields_is_json(type))
		return eval_refuse(refusal, 415, "415 Unsupported Media Type",
		    "%s is an unsupported media type.", type);
	if (len == 0)
		return eval_refuse(refusal, 400, TITLE_JSON, "%s",
		    "The body is empty: send its Content-Length with it.");
	if (jtree_parse(doc, body, len, &error))
		return true;
	return eval_refuse(refusal, 400, TITLE_JSON, "The body is no JSON: %s",
	    error.text);
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
	    eval_refuse(refusal, 400, TITLE_INVALID,
		"files[%zu].path does not match what is allowed: it must be "
		"relative, without line feeds and without \\0.",
		i);
}

/* Read the body, and check what its table cannot. */
static bool
eval_read_body(struct eval_request *req, struct eval_refusal *refusal)
{
	const struct eval_file *files;
	struct field_error error;

	if (!fields_read(&req->doc, body_rows, req->doc.root, req, &error))
		return eval_refuse_field(refusal, &error);
	if (req->code.data == NULL && req->args.items == NULL)
		return eval_refuse_value(refusal, req->doc.root,
		    "is not valid under any of the given schemas");
	files = req->files.items;
	for (size_t i = 0; i < req->files.count; i++)
		if (!eval_check_path(&files[i].path, i, refusal))
			return false;
	return true;
}

/* Resolve what the path means in /home, by its text alone.  False: it leaves
 * it, or no file system takes it. */
static bool
eval_resolve_path(struct eval_request *req, struct cell_input *file,
    const struct cell_bytes *path)
{
	size_t home = strlen(HOME);
	enum stage_up up;
	char *out = jtree_array(&req->doc, sizeof(HOME) + path->len + 1, 1);

	memcpy(out, HOME, sizeof(HOME));
	(void)stage_resolve(path->data, path->len, out, home, &up);
	file->always = up != STAGE_DOWN;
	/* "home/a" becomes "a", and "home" becomes "". */
	file->path = out + home + (out[home] == '/' ? 1 : 0);
	return strlen(path->data) == path->len &&
	    strncmp(out, HOME, home) == 0 &&
	    (out[home] == '/' || out[home] == '\0');
}

/* Read paths and contents, which are decoded where they lie.  When they cannot
 * be written one after the other, the refusal's description is what the run
 * "printed". */
static bool
eval_read_files(struct eval_request *req, struct eval_refusal *refusal)
{
	static const char *const classes[] = {
		[STAGE_EMPTY] = "IsADirectoryError",
		[STAGE_LONG] = "OSError",
		[STAGE_FULL] = "OSError",
		[STAGE_IS_FOLDER] = "IsADirectoryError",
		[STAGE_PARENT_IS_FILE] = "FileExistsError",
		[STAGE_ABOVE_IS_FILE] = "NotADirectoryError",
	};
	auto_stage struct stage stage = { .count = 0 };

	req->input_count = req->files.count;
	req->inputs = jtree_array(&req->doc, req->input_count + 1,
	    sizeof(*req->inputs));
	for (size_t i = 0; i < req->input_count; i++) {
		const struct eval_file *sent = req->files.items;
		const struct cell_bytes *path = &sent[i].path;
		struct cell_input *file = &req->inputs[i];
		struct cell_bytes content = sent[i].content;
		enum stage_outcome outcome;

		if (!eval_resolve_path(req, file, path))
			return eval_refuse(refusal, 400, TITLE_FILE,
			    "File path '%.*s' may not traverse beyond root",
			    SHOWN(path));
		if (content.data == NULL)
			content.data = "";
		else if (!base64_decode(content.data, content.len, true,
			     (char *)(uintptr_t)content.data, &content.len))
			return eval_refuse(refusal, 400, TITLE_FILE,
			    "Invalid base64 encoding for file '%.*s'",
			    SHOWN(path));
		file->content = content;
		file->mode = FILE_MODE;
		file->mtime = -1;
		outcome = stage_add(&stage, file->path);
		if (outcome != STAGE_FINE)
			return eval_refuse(refusal, 200, "",
			    "%s: Failed to create file '%.*s'.",
			    classes[outcome], SHOWN(path));
	}
	return true;
}

/* Collect the arguments: `args`, or -c, then `input`.  Empty ones at the
 * beginning do not count.  No program can be started with a NUL, or with more
 * than the cell takes. */
static bool
eval_add_arguments(struct eval_request *req, struct eval_refusal *refusal)
{
	const struct cell_bytes *args = req->args.items;
	size_t count = req->args.count + (req->code.data != NULL);
	size_t total = args == NULL ? sizeof("-c") : 0;

	req->words = jtree_array(&req->doc, count + 1, sizeof(*req->words));
	if (args == NULL)
		req->words[req->word_count++] = (struct cell_bytes){ "-c", 2 };
	for (size_t i = 0; i < count; i++) {
		const struct cell_bytes *arg = i < req->args.count ? &args[i] :
								     &req->code;

		if (arg->len == 0 && req->word_count == 0)
			continue;
		if (strlen(arg->data) != arg->len)
			return eval_refuse(refusal, 200, "",
			    "ValueError: embedded null byte");
		req->words[req->word_count++] = *arg;
		total += arg->len + 1;
	}
	return (total <= LIMIT_PART && req->input.len <= LIMIT_PART) ||
	    eval_refuse(refusal, 413, "413 Content Too Large", EVAL_TOO_LONG);
}

bool
eval_parse(struct eval_request *req, const char *const *interpreters,
    bool fallback, const char *content_type, const char *text, size_t len,
    struct eval_refusal *refusal)
{
	memset(req, 0, sizeof(*req));
	if (!eval_parse_json(&req->doc, content_type, text, len, refusal))
		return false;
	if (eval_read_body(req, refusal) &&
	    (eval_find_interpreter(req, interpreters, fallback) ||
		eval_refuse(refusal, 400, "executable_path does not exist",
		    "%s", "")) &&
	    eval_read_files(req, refusal) && eval_add_arguments(req, refusal))
		return true;
	jtree_release(&req->doc);
	return false;
}

/* ---- output ---- */

bool
eval_output_add(struct eval_output *out, const void *data, size_t len)
{
	size_t left = out->text.max - out->text.len;
	enum utf8_fault fault = UTF8_FINE;

	buf_add(&out->text, data, len < left ? len : left);
	out->valid += utf8_span(buf_str(&out->text) + out->valid,
	    out->text.len - out->valid);
	if (out->valid < out->text.len)
		(void)utf8_look(out->text.data + out->valid,
		    out->text.len - out->valid, &fault);
	if (fault == UTF8_WRONG)
		out->state = EVAL_OUTPUT_INVALID;
	else if (len >= left)
		out->state = EVAL_OUTPUT_FULL;
	return out->state == EVAL_OUTPUT_OPEN;
}

/* Write every newline as "\n", in place. */
static void
unite_newlines(struct buf *text)
{
	size_t n = 0;

	for (size_t i = 0; i < text->len; i++) {
		char c = text->data[i];

		if (c == '\n' && i > 0 && text->data[i - 1] == '\r')
			continue;
		text->data[n++] = c;
	}
	text->len = n;
	for (size_t i = 0; i < n; i++)
		if (text->data[i] == '\r')
			text->data[i] = '\n';
}

void
eval_output_end(struct eval_output *out)
{
	/* The bound may cut the last character. */
	if (out->valid < out->text.len && out->state == EVAL_OUTPUT_OPEN)
		out->state = EVAL_OUTPUT_INVALID;
	out->text.len = out->valid;
	unite_newlines(&out->text);
}

/* ---- the answer ---- */

bool
eval_wants(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name == NULL ? path : name + 1;
	return path[0] != '.' && strstr(path, "/.") == NULL && name[0] != '_' &&
	    name[0] != '\0';
}

static void
add_extras(struct buf *out, const struct eval_result *result)
{
	const struct run_files *files = result->files;
	const struct cell_result *cell = result->cell;
	const char *comma = "";

	if (cell != NULL)
		buf_addf(out,
		    ", \"duration_ms\": %" PRId64 ", \"cpu_ms\": %" PRId64
		    ", \"max_rss_bytes\": %" PRId64 ", \"reason\": \"%s\"",
		    cell->wall_us / 1000, cell->cpu_us / 1000, cell->max_rss,
		    outcome_reason(cell));
	buf_adds(out, ", \"left_out\": [");
	for (size_t i = 0; files != NULL && i < files->count; i++) {
		const struct run_file *file = &files->items[i];

		if (file->why == NULL)
			continue;
		jtext_addf(out, JTEXT_UTF8,
		    "%s{\"path\": \"%s\", \"size\": %" PRId64
		    ", \"why\": \"%s\"}",
		    comma, file->path, file->size, file->why);
		comma = ", ";
	}
	buf_addf(out, "], \"more_left_out\": %s",
	    cell != NULL && cell->cut ? "true" : "false");
}

/* Output, exit status, files and, if wanted, the extras. */
size_t
eval_answer(struct buf *out, const struct eval_result *result)
{
	const struct run_files *files = result->files;
	const char *text = result->null_text;
	const char *comma = "";
	size_t contents = 0;

	buf_adds(out, "{\"stdout\": ");
	if (text != NULL) {
		jtext_add_string(out, text, strlen(text), JTEXT_UTF8);
		buf_adds(out, ", \"returncode\": null");
	} else {
		jtext_add_string(out, buf_str(result->text), result->text->len,
		    JTEXT_UTF8);
		buf_addf(out, ", \"returncode\": %d",
		    outcome_returncode(result->cell));
	}
	buf_adds(out, ", \"files\": [");
	for (size_t i = 0; files != NULL && i < files->count; i++) {
		struct run_file *file = &files->items[i];

		if (text != NULL || file->why != NULL)
			continue;
		jtext_addf(out, JTEXT_UTF8,
		    "%s{\"path\": \"%s\", \"size\": %" PRId64
		    ", \"content\": \"",
		    comma, file->path, file->size);
		comma = ", ";
		file->at = out->len;
		contents += (file->content.len + 2) / 3 * 4;
		buf_adds(out, "\"}");
	}
	buf_addc(out, ']');
	if (result->extras)
		add_extras(out, result);
	buf_addc(out, '}');
	return out->len + contents;
}

void
eval_add_versions(struct buf *out, const char *const *interpreters)
{
	buf_addf(out, "{\"default\":\"%s\",\"versions\":[",
	    interpreters[0] == NULL ? "" : interpreters[0]);
	for (size_t i = 0; interpreters[i] != NULL; i++)
		buf_addf(out,
		    "%s{\"name\":\"%s\",\"executable_path\":"
		    "\"/snekbin/python/%s/bin/python\"}",
		    i > 0 ? "," : "", interpreters[i], interpreters[i]);
	buf_adds(out, "]}");
}
