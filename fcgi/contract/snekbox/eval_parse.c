/* SPDX-License-Identifier: MIT */
/*
 * The steps of a request to /eval, in their order.
 */
#include <string.h>

#include "../base64.h"
#include "eval_interpreter.h"
#include "eval_request.h"
#include "../outcome.h"
#include "../../pytext/pyutf8.h"
#include "../stage.h"

#include "../../../sandbox/base/buf.h"
#include "../../../sandbox/base/text.h"
#include "../../../sandbox/protocol/frame_limits.h"

#define HOME "home"
#define FILE_MODE 0777
#define FIELDS_MAX 1000
#define FORM_TITLE "Invalid URL-encoded"
#define FORM_WHY "Could not parse URL-encoded body - "

/* ---- the body ---- */

/* With the words of the original for what is no JSON. */
static bool
parse_json(struct pyjson *doc, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	struct pyjson_error error;

	if (len == 0)
		return eval_refuse_with(refusal, 400, "Invalid JSON",
		    "Could not parse an empty JSON body");
	if (pyjson_parse(doc, body, len, PYJSON_DECODED, &error))
		return true;
	(void)eval_refuse_with(refusal, 400, "Invalid JSON",
	    "Could not parse JSON body - ");
	pyjson_explain(&refusal->description, &error);
	return false;
}

/* Undo '+' and %XX; what is no UTF-8 then becomes U+FFFD. */
static char *
decode(struct pyjson *doc, const char *s, const char *end, size_t *len)
{
	auto_buf struct buf bytes = BUF_INIT((size_t)(end - s));
	auto_buf struct buf clean = BUF_INIT(3 * (size_t)(end - s));

	for (; s < end; s++) {
		unsigned char byte = *s == '+' ? ' ' : (unsigned char)*s;

		if (*s == '%' && end - s > 2 &&
		    text_parse_hex(s + 1, 2, &byte, 1))
			s += 2;
		buf_addc(&bytes, (char)byte);
	}
	pyutf8_add_whole(&clean, buf_str(&bytes), bytes.len);
	*len = clean.len;
	return pyjson_tree_copy(doc, buf_str(&clean), clean.len);
}

/* One field from s to end: its value goes into the array that has its name,
 * which stands where the name came first. */
static void
add_field(struct pyjson *doc, const char *s, const char *end)
{
	const char *mark = memchr(s, '=', (size_t)(end - s));
	struct pyvalue *values;
	struct pyvalue *value;
	size_t len;
	char *name;

	mark = mark == NULL ? end : mark;
	name = decode(doc, s, mark, &len);
	values = pyvalue_find(&doc->root, name, len);
	if (values == NULL) {
		values = pyjson_tree_add(doc, &doc->root);
		values->type = PYVALUE_ARRAY;
		values->name = name;
		values->name_len = len;
	}
	value = pyjson_tree_add(doc, values);
	value->type = PYVALUE_STRING;
	value->u.text = decode(doc, mark < end ? mark + 1 : end, end,
	    &value->count);
}

/* A urlencoded form as the object that it stands for. */
static bool
parse_form(struct pyjson *doc, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	const char *end = body + len;
	struct pyvalue *member;
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)body[i] >= 0x80)
			return eval_refuse_with(refusal, 400, FORM_TITLE,
			    FORM_WHY
			    "'ascii' codec can't decode byte 0x%02x in "
			    "position %zu: ordinal not in range(128)",
			    (unsigned)(unsigned char)body[i], i);
	pyjson_tree_init(doc);
	doc->root.type = PYVALUE_OBJECT;
	while (body < end) {
		const char *stop = memchr(body, '&', (size_t)(end - body));

		stop = stop == NULL ? end : stop;
		if (stop > body && ++count == FIELDS_MAX)
			return eval_refuse_with(refusal, 400, FORM_TITLE,
			    FORM_WHY "too many fields");
		if (stop > body)
			add_field(doc, body, stop);
		body = stop + 1;
	}
	/* What came once is no array. */
	member = doc->root.u.parts.first;
	for (; member != NULL; member = member->next)
		if (member->count == 1)
			pyvalue_set(member, member->u.parts.first);
	return true;
}

/* The case of the type counts, its parameters do not. */
static bool
is_media(const char *type, const char *name)
{
	size_t len = strcspn(type, "; \t");

	return len == strlen(name) && memcmp(type, name, len) == 0;
}

/* What the Content-Type says decides how. */
static bool
parse_body(struct pyjson *doc, const char *type, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	type = type == NULL ? "" : type;
	if (is_media(type, "") || is_media(type, "*/*") ||
	    is_media(type, "application/json") ||
	    is_media(type, "application/*"))
		return parse_json(doc, body, len, refusal);
	if (is_media(type, "application/x-www-form-urlencoded"))
		return parse_form(doc, body, len, refusal);
	if (is_media(type, "multipart/form-data"))
		return eval_refuse_with(refusal, 400, EVAL_TITLE_INVALID,
		    "<MultipartForm object> is not of type 'object'");
	return eval_refuse_with(refusal, 415, EVAL_TITLE_MEDIA,
	    "%s is an unsupported media type.", type);
}

/* ---- the types, and which members there must be ---- */

static bool
check_type(const struct pyvalue *value, enum pyvalue_type type,
    struct eval_refusal *refusal)
{
	return value->type == type ||
	    eval_refuse_value(refusal, value, " is not of type '%s'",
		type == PYVALUE_STRING	  ? "string" :
		    type == PYVALUE_ARRAY ? "array" :
					    "object");
}

/* A member that need not be there. */
static bool
check_member(const struct pyvalue *object, const char *name,
    enum pyvalue_type type, struct eval_refusal *refusal)
{
	const struct pyvalue *value = pyvalue_get(object, name);

	return value == NULL || check_type(value, type, refusal);
}

/* The last part of a list, which need not be there. */
static const struct pyvalue *
last_of(const struct pyvalue *list)
{
	return list == NULL ? NULL : list->u.parts.last;
}

/* What stands in the two lists, from the last to the first. */
static bool
check_items(const struct pyvalue *files, const struct pyvalue *args,
    struct eval_refusal *refusal)
{
	const struct pyvalue *item = last_of(files);

	for (; item != NULL; item = item->prev) {
		if (!check_type(item, PYVALUE_OBJECT, refusal))
			return false;
		if (pyvalue_get(item, "path") == NULL)
			return eval_refuse_with(refusal, 400,
			    EVAL_TITLE_INVALID,
			    "'path' is a required property");
	}
	for (item = last_of(args); item != NULL; item = item->prev)
		if (!check_type(item, PYVALUE_STRING, refusal))
			return false;
	return true;
}

/* The members of each file.  The pattern of a path: no '/' first, no backslash
 * with a zero, and a line feed only as the last character. */
static bool
check_files(const struct pyvalue *files, struct eval_refusal *refusal)
{
	const struct pyvalue *file = last_of(files);

	for (; file != NULL; file = file->prev) {
		const struct pyvalue *path = pyvalue_get(file, "path");
		const char *s = path->u.text;
		const char *feed;

		if (!check_type(path, PYVALUE_STRING, refusal))
			return false;
		feed = memchr(s, '\n', path->count);
		if (s[0] == '/' || memmem(s, path->count, "\\0", 2) != NULL ||
		    (feed != NULL && feed != s + path->count - 1))
			return eval_refuse_value(refusal, path,
			    " does not match "
			    "'^(?!/)(?!.*\\\\\\\\0).*$'");
		if (!check_member(file, "content", PYVALUE_STRING, refusal))
			return false;
	}
	return true;
}

/* Breadth first, as the validator ranks faults: the whole, its members, the
 * items of lists, the members of these. */
static bool
check_schema(const struct pyvalue *root, struct eval_refusal *refusal)
{
	const struct pyvalue *files = pyvalue_get(root, "files");
	const struct pyvalue *args = pyvalue_get(root, "args");

	if (!check_type(root, PYVALUE_OBJECT, refusal))
		return false;
	if (pyvalue_get(root, "input") == NULL && args == NULL)
		return eval_refuse_value(refusal, root,
		    " is not valid under any of the given schemas");
	return check_member(root, "input", PYVALUE_STRING, refusal) &&
	    check_member(root, "files", PYVALUE_ARRAY, refusal) &&
	    check_member(root, "executable_path", PYVALUE_STRING, refusal) &&
	    check_member(root, "args", PYVALUE_ARRAY, refusal) &&
	    check_items(files, args, refusal) && check_files(files, refusal);
}

/* In the style of the validator, though it knows none of these. */
static bool
take_extras(struct eval_request *req, struct eval_refusal *refusal)
{
	const struct pyvalue *root = &req->doc.root;
	const struct pyvalue *input = pyvalue_get(root, "stdin");
	const struct pyvalue *timeout = pyvalue_get(root, "timeout_ms");

	if (!check_member(root, "stdin", PYVALUE_STRING, refusal))
		return false;
	if (input != NULL && pyutf8_has_surrogate(input->u.text, input->count))
		return eval_refuse_value(refusal, input,
		    " cannot be encoded in UTF-8");
	if (input != NULL) {
		req->input = input->u.text;
		req->input_len = input->count;
	}
	if (timeout == NULL)
		return true;
	if (!pyvalue_integer(timeout, &req->timeout_ms))
		return eval_refuse_value(refusal, timeout,
		    " is not of type 'integer'");
	if (req->timeout_ms < 1)
		return eval_refuse_value(refusal, timeout,
		    " is less than the minimum of 1");
	return req->timeout_ms <= OUTCOME_TIMEOUT_MAX_MS ||
	    eval_refuse_value(refusal, timeout,
		" is greater than the maximum of %d", OUTCOME_TIMEOUT_MAX_MS);
}

/* ---- the interpreter ---- */

/* executable_path: an interpreter, or why there is none. */
static bool
take_interpreter(struct eval_request *req, const char *const *interpreters,
    bool fallback, const struct pyvalue *path, struct eval_refusal *refusal)
{
	const char *why_not;
	bool up = false;
	char *out;

	if (path == NULL || path->count == 0)
		return true;
	if (path->u.text[0] != '/' || strlen(path->u.text) != path->count)
		return eval_refuse(refusal, 400,
		    "executable_path does not exist");
	out = pyjson_tree_array(&req->doc, path->count + 2, 1);
	(void)stage_resolve(path->u.text, path->count, out, 0, &up);
	why_not = eval_interpreter(interpreters, out, &req->interpreter);
	req->stands_in = why_not != NULL && fallback &&
	    eval_nearest(interpreters, out, &req->interpreter);
	return why_not == NULL || req->stands_in ||
	    eval_refuse(refusal, 400, why_not);
}

/* ---- files ---- */

/* With the path as it was sent between two texts. */
static bool
refuse_file(struct eval_refusal *refusal, const char *before,
    const struct pyvalue *path, const char *after)
{
	(void)eval_refuse_with(refusal, 400, EVAL_TITLE_FILE, "%s", before);
	buf_add(&refusal->description, path->u.text, path->count);
	buf_adds(&refusal->description, after);
	return false;
}

/* Resolve what the path means in /home, by its text alone: what leaves it, and
 * what no file system takes, is refused. */
static bool
take_path(struct eval_request *req, struct cell_input *file,
    const struct pyvalue *path, struct eval_refusal *refusal)
{
	size_t home = strlen(HOME);
	char *out = pyjson_tree_array(&req->doc, sizeof(HOME) + path->count + 1,
	    1);

	memcpy(out, HOME, sizeof(HOME));
	(void)stage_resolve(path->u.text, path->count, out, home,
	    &file->always);
	if (strlen(path->u.text) != path->count ||
	    pyutf8_has_surrogate(path->u.text, path->count) ||
	    strncmp(out, HOME, home) != 0 ||
	    (out[home] != '/' && out[home] != '\0'))
		return refuse_file(refusal, "File path '", path,
		    "' may not traverse beyond root");
	/* Of "home/a" the "a", of "home" nothing. */
	file->path = out + home + (out[home] == '/' ? 1 : 0);
	return true;
}

/* Paths and contents, which are decoded where they lie.  When they cannot be
 * written one after the other, the refusal's description is what the run
 * "printed". */
static bool
take_files(struct eval_request *req, const struct pyvalue *files,
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
	enum stage_outcome outcome = STAGE_FINE;
	auto_stage struct stage stage = { .count = 0 };
	const char *given = NULL;
	const struct pyvalue *item;

	if (files == NULL)
		return true;
	req->inputs = pyjson_tree_array(&req->doc, files->count,
	    sizeof(*req->inputs));
	for (item = files->u.parts.first; item != NULL; item = item->next) {
		struct cell_input *file = &req->inputs[req->input_count++];
		const struct pyvalue *path = pyvalue_get(item, "path");
		const struct pyvalue *content = pyvalue_get(item, "content");

		file->mode = FILE_MODE;
		file->mtime = -1;
		if (!take_path(req, file, path, refusal))
			return false;
		file->content.data = content == NULL ? "" : content->u.text;
		if (content != NULL &&
		    !base64_decode(content->u.text, content->count,
			content->u.text, &file->content.len))
			return refuse_file(refusal,
			    "Invalid base64 encoding for file '", path, "'");
		/* What is wrong with another one is told first. */
		if (outcome == STAGE_FINE) {
			outcome = stage_add(&stage, file->path);
			given = path->u.text;
		}
	}
	return outcome == STAGE_FINE ||
	    eval_refuse_with(refusal, 200, "",
		"%s: Failed to create file '%s'.", classes[outcome], given);
}

/* ---- arguments ---- */

/* Empty ones at the beginning do not count.  With some no program can be
 * started. */
static bool
take_arg(struct eval_request *req, const struct pyvalue *arg,
    struct eval_refusal *refusal)
{
	if (arg->count == 0 && req->word_count == 0)
		return true;
	req->words[req->word_count++] = (struct cell_bytes){ arg->u.text,
		arg->count };
	return (strlen(arg->u.text) == arg->count &&
		   !pyutf8_has_surrogate(arg->u.text, arg->count)) ||
	    eval_refuse_with(refusal, 200, "",
		"ValueError: embedded null byte");
}

/* `args`, or -c, then `input`. */
static bool
take_args(struct eval_request *req, const struct pyvalue *root,
    struct eval_refusal *refusal)
{
	const struct pyvalue *args = pyvalue_get(root, "args");
	const struct pyvalue *input = pyvalue_get(root, "input");
	const struct pyvalue *arg = NULL;

	req->words = pyjson_tree_array(&req->doc,
	    args == NULL ? 2 : args->count + 1, sizeof(*req->words));
	if (args == NULL)
		req->words[req->word_count++] = (struct cell_bytes){ "-c", 2 };
	else
		arg = args->u.parts.first;
	for (; arg != NULL; arg = arg->next)
		if (!take_arg(req, arg, refusal))
			return false;
	return input == NULL || take_arg(req, input, refusal);
}

/* Is it short enough for the cell? */
static bool
check_length(const struct eval_request *req, struct eval_refusal *refusal)
{
	size_t total = 0;

	for (size_t i = 0; i < req->word_count; i++)
		total += req->words[i].len + 1;
	return (total <= LIMIT_PART && req->input_len <= LIMIT_PART) ||
	    eval_refuse_with(refusal, 413, EVAL_TITLE_LARGE, "%s",
		EVAL_TOO_LONG);
}

/* The order of the steps decides which of several faults is told. */
bool
eval_parse(struct eval_request *req, const char *const *interpreters,
    bool fallback, const char *content_type, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	const struct pyvalue *root = &req->doc.root;

	memset(req, 0, sizeof(*req));
	if (parse_body(&req->doc, content_type, body, len, refusal) &&
	    check_schema(root, refusal) && take_extras(req, refusal) &&
	    take_interpreter(req, interpreters, fallback,
		pyvalue_get(root, "executable_path"), refusal) &&
	    take_files(req, pyvalue_get(root, "files"), refusal) &&
	    take_args(req, root, refusal) && check_length(req, refusal))
		return true;
	pyjson_release(&req->doc);
	return false;
}
