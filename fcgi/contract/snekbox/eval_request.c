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
#include "contract/outcome.h"
#include "contract/semver.h"
#include "contract/stage.h"
#include "pytext/pydump.h"
#include "pytext/pyutf8.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "base/utf8.h"
#include "protocol/frame_limits.h"

#define EVAL_TITLE_INVALID "Request data failed validation"
#define EVAL_TITLE_FILE "Request file is invalid"
#define EVAL_TITLE_LARGE "413 Content Too Large"
#define EVAL_TITLE_MEDIA "415 Unsupported Media Type"
#define TYPE_JSON "application/json"
#define TYPE_XML "application/xml"
#define HOME "home"
#define FILE_MODE 0777
#define FIELDS_MAX 1000
#define FORM_TITLE "Invalid URL-encoded"
#define FORM_WHY "Could not parse URL-encoded body - "

/* ---- what is refused ---- */

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

/* Refuse with 400, EVAL_TITLE_INVALID: "<repr><why>". */
static bool __attribute__((format(printf, 3, 4)))
eval_refuse_value(struct eval_refusal *refusal, const struct pyvalue *value,
    const char *why, ...)
{
	va_list ap;

	(void)eval_refuse(refusal, 400, EVAL_TITLE_INVALID);
	pydump_add_repr(&refusal->description, value);
	va_start(ap, why);
	buf_addv(&refusal->description, why, ap);
	va_end(ap);
	return false;
}

/* ---- what the client takes ---- */

static bool
is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(s, word, len) == 0;
}

/* The number after ";q=" among the parameters of a range. */
static double
range_quality(const char *s, const char *end)
{
	for (; end - s > 2; s++)
		if ((s[0] == ';' || s[0] == ' ') && (s[1] | 0x20) == 'q' &&
		    s[2] == '=')
			return strtod(s + 3, NULL);
	return 1;
}

/* The quality of the range of an Accept header that fits a type best: exactly,
 * "<main>/" and "*", or any. */
static double
accept_quality(const char *accept, const char *type, const char *main)
{
	int best = 0;
	double quality = 0;

	while (*accept != '\0') {
		const char *range = accept + strspn(accept, " \t");
		size_t len = strcspn(range, ",; \t");
		bool any = is(range, len, "*/*") || is(range, len, "*");
		int fit = is(range, len, type) ? 3 :
		    is(range, len, main)       ? 2 :
						 any;

		accept = range + strcspn(range, ",");
		if (fit > best) {
			best = fit;
			quality = range_quality(range + len, accept);
		}
		accept += *accept == ',' ? 1 : 0;
	}
	return quality;
}

/* The first of equal qualities counts, in the order of the original. */
const char *
eval_refusal_type(const char *accept)
{
	static const char *const types[][2] = {
		{ TYPE_JSON, "application/*" },
		{ "text/xml", "text/*" },
		{ TYPE_XML, "application/*" },
	};
	const char *type = NULL;
	double best = 0;

	if (accept == NULL || accept[0] == '\0')
		return TYPE_JSON;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		double quality = accept_quality(accept, types[i][0],
		    types[i][1]);

		if (quality > best) {
			best = quality;
			type = types[i][0];
		}
	}
	if (type == NULL && strcasestr(accept, "+json") != NULL)
		return TYPE_JSON;
	if (type == NULL && strcasestr(accept, "+xml") != NULL)
		return TYPE_XML;
	return type;
}

/* ---- the body of a refusal ---- */

/* A text for JSON, or for XML, which cannot say control characters and lone
 * surrogates. */
static void
add_text(struct buf *out, bool xml, const char *s, size_t len)
{
	size_t step = len;

	if (!xml)
		pydump_add_text(out, s, len, PYDUMP_UTF8);
	for (; xml && len > 0; s += step, len -= step) {
		enum utf8_fault fault;

		step = utf8_look(s, len, false, &fault);
		if (*s == '&')
			buf_adds(out, "&amp;");
		else if (*s == '<')
			buf_adds(out, "&lt;");
		else if (*s == '>')
			buf_adds(out, "&gt;");
		else if (fault != UTF8_FINE ||
		    ((unsigned char)*s < 0x20 && *s != '\t' && *s != '\n' &&
			*s != '\r'))
			buf_adds(out, "\xef\xbf\xbd");
		else
			buf_add(out, s, step);
	}
}

void
eval_refusal_add(struct buf *out, const struct eval_refusal *refusal,
    const char *type)
{
	const struct buf *text = &refusal->description;
	bool xml = type != NULL && strcmp(type, TYPE_JSON) != 0;

	if (type == NULL)
		return;
	buf_addf(out,
	    xml ? "<?xml version=\"1.0\" encoding=\"UTF-8\"?><error>"
		  "<title>%s</title>" :
		  "{\"title\": \"%s\"",
	    refusal->title);
	if (text->len > 0) {
		buf_adds(out, xml ? "<description>" : ", \"description\": \"");
		add_text(out, xml, buf_str(text), text->len);
		/* A description that was too long has been cut. */
		if (text->overflow)
			add_text(out, xml, "…", strlen("…"));
		buf_adds(out, xml ? "</description>" : "\"");
	}
	buf_adds(out, xml ? "</error>" : "}");
}

/* ---- which interpreter a path means ---- */

/* Files that every image has, beside interpreters.  The image itself is not
 * looked at before a cell of it is leased. */
static const char *const usual_files[] = { "bin/sh", "etc/group",
	"etc/hostname", "etc/hosts", "etc/passwd", "etc/resolv.conf", "home/",
	"tmp/", "usr/bin/env", "usr/lib/", "usr/local/bin/" };

#define PYTHONS "snekbin/python/"
#define DIGITS "0123456789."
#define BUILDS "tj" /* without the GIL; with the JIT */
#define USUAL_FILES (sizeof(usual_files) / sizeof(usual_files[0]))

/* Is `path`, without its first '/', that of the file `place`, or (*folder is
 * set then) of a folder above it? */
static bool
is_place(const char *path, const char *place, bool *folder)
{
	size_t len = strlen(path);

	*folder = *folder || len == 0 ||
	    (strncmp(path, place, len) == 0 && place[len] == '/');
	return strcmp(path, place) == 0;
}

/* Is it the path of the interpreter with this name? */
static bool
is_interpreter(const char *path, const char *name, bool *folder)
{
	const char *const versions[] = { "", "3", name };
	bool found = false;

	for (size_t i = 0; i < 3; i++) {
		auto_buf struct buf place = BUF_INIT(SIZE_MAX);

		buf_addf(&place, PYTHONS "%s/bin/python%s", name, versions[i]);
		found = is_place(path, place.data, folder) || found;
	}
	return found;
}

/* Find the interpreter that a path means, the field executable_path of /eval.
 * NULL: *found is one of names ("3.11", …, NULL), or NULL for the default one.
 * Otherwise the title of the refusal; *found is NULL then.  The path is without
 * its first '/', its ".", ".." and double slashes. */
static const char *
eval_interpreter(const char *const *names, const char *path, const char **found)
{
	bool folder = false;

	*found = NULL;
	if (is_interpreter(path, "default", &folder))
		return NULL;
	for (size_t i = 0; names[i] != NULL; i++) {
		if (is_interpreter(path, names[i], &folder)) {
			*found = names[i];
			return NULL;
		}
	}
	for (size_t i = 0; i < USUAL_FILES; i++) {
		if (is_place(path, usual_files[i], &folder))
			return "executable_path is not executable";
	}
	return folder ? "executable_path is not a file" :
			"executable_path does not exist";
}

/* The version of the interpreter, or of a build of it, that a path means. */
static bool
read_wanted(struct semver *wanted, const char *path)
{
	const char *version = path + sizeof(PYTHONS) - 1;
	size_t digits;
	size_t len;
	bool folder = false;
	auto_free char *name = NULL;

	if (strncmp(path, PYTHONS, sizeof(PYTHONS) - 1) != 0)
		return false;
	len = strcspn(version, "/");
	digits = strspn(version, DIGITS);
	if (digits + 1 < len ||
	    (digits < len && strchr(BUILDS, version[digits]) == NULL))
		return false;
	name = xstrndup(version, len);
	return is_interpreter(path, name, &folder) &&
	    semver_read_wanted(wanted, version, digits);
}

/* Find the interpreter that stands in for one that is not there.  True: the
 * path means such a version ("3.15"), or a free-threaded or a JIT build
 * ("3.14t", "3.14j").  *found is then the nearest of names. */
static bool
eval_nearest(const char *const *names, const char *path, const char **found)
{
	struct semver wanted;
	struct semver best;

	*found = NULL;
	if (!read_wanted(&wanted, path))
		return false;
	for (size_t i = 0; names[i] != NULL; i++) {
		size_t digits = strspn(names[i], DIGITS);
		struct semver version;

		/* Only plain builds count: "3.14", "3.14-scientific". */
		if ((names[i][digits] != '\0' && names[i][digits] != '-') ||
		    !semver_read_wanted(&version, names[i], digits) ||
		    !semver_is_nearer(&version, *found == NULL ? NULL : &best,
			&wanted))
			continue;
		best = version;
		*found = names[i];
	}
	return *found != NULL;
}

/* ---- the body ---- */

/* Parse a JSON body; its faults are told in the words of the original. */
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
	/* A field that came once is no array. */
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
	return is(type, strcspn(type, "; \t"), name);
}

/* Parse a body by its Content-Type. */
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

/* Check the items of the two lists, from the last to the first. */
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

/* Check and take our own members.  Faults are told in the style of the
 * validator, which knows none of these. */
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
	enum stage_up up;
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

/* Refuse a file: its path, as it was sent, stands between two texts. */
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
	enum stage_up up;
	char *out = pyjson_tree_array(&req->doc, sizeof(HOME) + path->count + 1,
	    1);

	memcpy(out, HOME, sizeof(HOME));
	(void)stage_resolve(path->u.text, path->count, out, home, &up);
	file->always = up != STAGE_DOWN;
	if (strlen(path->u.text) != path->count ||
	    pyutf8_has_surrogate(path->u.text, path->count) ||
	    strncmp(out, HOME, home) != 0 ||
	    (out[home] != '/' && out[home] != '\0'))
		return refuse_file(refusal, "File path '", path,
		    "' may not traverse beyond root");
	/* "home/a" becomes "a", and "home" becomes "". */
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
		/* A fault of a later file is told before this one. */
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

/* Take an argument.  Empty ones at the beginning do not count.  A NUL or a
 * surrogate is refused, since no program can be started with it. */
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
