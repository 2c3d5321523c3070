/* SPDX-License-Identifier: MIT */
#include "contract/piston/request.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/base64.h"
#include "contract/stage.h"
#include "pytext/pydump.h"

#include "base/text.h"
#include "base/utf8.h"
#include "protocol/frame_limits.h"

#define ALIASES_MAX 6
#define ALIAS_MAX 128  /* an interpreter's name is shorter */
#define NAME_DIGITS 32 /* of "file0.code" */
#define MEMORY_MAX ((double)((int64_t)1 << 50)) /* as good as none */
#define EXACT_MAX 9007199254740992.0 /* all above are whole numbers */

/* ---- what is refused ---- */

/* Refuse with a text that may hold anything.  Always false. */
static bool
piston_refuse_bytes(struct piston_refusal *refusal, int status,
    const char *text, size_t len)
{
	*refusal = (struct piston_refusal){ .status = status,
		.body = BUF_INIT(PISTON_REFUSAL_MAX) };
	pydump_addf(&refusal->body, PYDUMP_UTF8, "{\"message\":\"%.*s\"}",
	    (int)len, text);
	return false;
}

bool
piston_refuse(struct piston_refusal *refusal, int status, const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(4096);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	return piston_refuse_bytes(refusal, status, buf_str(&text), text.len);
}

/* ---- languages in their versions ---- */

/* Names of a runtime beside its language's. */
struct aliases {
	size_t count;
	char names[ALIASES_MAX][ALIAS_MAX];
};

static const char *
piston_language_name(enum piston_language language)
{
	return language == PISTON_BASH ? "bash" : "python";
}

static void
add(struct aliases *all, const char *name, const char *rest)
{
	int n = snprintf(all->names[all->count], ALIAS_MAX, "%s%s", name, rest);

	if (n > 0 && n < ALIAS_MAX)
		all->count++;
}

/* List them.  Python's are those of the program, and the operator's name. */
static void
list_aliases(const struct piston_runtime *runtime, struct aliases *all)
{
	char minor[48];

	all->count = 0;
	if (runtime->language == PISTON_BASH) {
		add(all, "sh", "");
		return;
	}
	(void)snprintf(minor, sizeof(minor), "%" PRId64 ".%" PRId64,
	    runtime->version.major, runtime->version.minor);
	add(all, "py", "");
	add(all, "py3", "");
	add(all, "python3", "");
	add(all, "python", minor);
	if (strcmp(minor, runtime->interpreter) != 0)
		add(all, "python", runtime->interpreter);
}

/* Is that a name of the runtime? */
static bool
answers_to(const struct piston_runtime *runtime, const struct pyvalue *name)
{
	struct aliases all;

	if (pyvalue_is(name, piston_language_name(runtime->language)))
		return true;
	list_aliases(runtime, &all);
	for (size_t i = 0; i < all.count; i++)
		if (pyvalue_is(name, all.names[i]))
			return true;
	return false;
}

/* The newest runtime of a language, or of one of its aliases, in a range of
 * versions; the first one of equal versions.  nearest: the one nearest to the
 * version that the range names.  NULL: there is none, or the range names no
 * version. */
static const struct piston_runtime *
find_runtime(const struct piston_runtime *runtimes, size_t count,
    const struct pyvalue *language, const struct pyvalue *range, bool nearest)
{
	const struct semver *best = NULL;
	const struct piston_runtime *found = NULL;
	struct semver wanted = { 0 };

	if (nearest &&
	    !semver_read_wanted(&wanted, range->u.text, range->count))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const struct semver *version = &runtimes[i].version;

		if (!answers_to(&runtimes[i], language) ||
		    !(nearest ? semver_is_nearer(version, best, &wanted) :
				semver_is_in(version, range->u.text,
				    range->count) &&
				(best == NULL ||
				    semver_compare(version, best) > 0)))
			continue;
		found = &runtimes[i];
		best = version;
	}
	return found;
}

/* ---- lists ---- */

void
piston_add_runtime(struct buf *out, const struct piston_runtime *runtime,
    const char *version)
{
	buf_addf(out,
	    "\"language\":\"%s\",\"%s\":\"%" PRId64 ".%" PRId64 ".%" PRId64
	    "\"",
	    piston_language_name(runtime->language), version,
	    runtime->version.major, runtime->version.minor,
	    runtime->version.patch);
}

void
piston_add_runtimes(struct buf *out, const struct piston_runtime *runtimes,
    size_t count)
{
	struct aliases all;

	buf_addc(out, '[');
	for (size_t i = 0; i < count; i++) {
		buf_adds(out, i == 0 ? "{" : ",{");
		piston_add_runtime(out, &runtimes[i], "version");
		buf_adds(out, ",\"aliases\":[");
		list_aliases(&runtimes[i], &all);
		for (size_t k = 0; k < all.count; k++)
			buf_addf(out, "%s\"%s\"", k == 0 ? "" : ",",
			    all.names[k]);
		buf_adds(out, "]}");
	}
	buf_addc(out, ']');
}

void
piston_add_packages(struct buf *out, const struct piston_runtime *runtimes,
    size_t count)
{
	buf_addc(out, '[');
	for (size_t i = 0; i < count; i++) {
		buf_adds(out, i == 0 ? "{" : ",{");
		piston_add_runtime(out, &runtimes[i], "language_version");
		buf_adds(out, ",\"installed\":true}");
	}
	buf_addc(out, ']');
}

/* ---- files: what they hold ---- */

enum encoding { ENCODING_UTF8, ENCODING_BASE64, ENCODING_HEX, ENCODING_OTHER };

void
piston_make_text(char *text, size_t len)
{
	static const unsigned char replacement[] = { 0xef, 0xbf, 0xbd };
	unsigned char *s = (unsigned char *)text;

	for (size_t i = 0; i + 2 < len; i++)
		if (s[i] == 0xed && s[i + 1] >= 0xa0)
			memcpy(s + i, replacement, sizeof(replacement));
}

/* Decode in place, as Buffer.from() does.  Either alphabet is taken, other
 * characters are skipped, and the first '=' is the end.  Returns the length. */
static size_t
decode_base64(char *text, size_t len)
{
	size_t end = 0;

	for (; end < len && text[end] != '='; end++)
		text[end] = text[end] == '-' ? '+' :
		    text[end] == '_'	     ? '/' :
		    (text[end] & 0x80) != 0  ? ' ' :
					       text[end];
	(void)base64_decode(text, end, text, &len);
	return len;
}

/* The same for hex, which ends with the first pair that is none. */
static size_t
decode_hex(char *text, size_t len)
{
	unsigned char byte;
	size_t n = 0;

	for (; 2 * n + 1 < len && text_parse_hex(text + 2 * n, 2, &byte, 1);
	     n++)
		text[n] = (char)byte;
	return n;
}

/* Is the value falsy in JavaScript?  A number may be asked for, so 0 does not
 * count here. */
static bool
is_nothing(const struct pyvalue *value)
{
	return pyvalue_is_absent(value) ||
	    (value->type == PYVALUE_BOOL && !value->u.truth) ||
	    (value->type == PYVALUE_STRING && value->count == 0);
}

static bool
is_falsy(const struct pyvalue *value)
{
	return is_nothing(value) ||
	    (value->type == PYVALUE_INT && value->u.integer == 0);
}

static enum encoding
encoding_of(const struct pyvalue *file)
{
	static const char *const names[] = { "utf8", "base64", "hex" };
	const struct pyvalue *value = pyvalue_get(file, "encoding");
	enum encoding i = ENCODING_UTF8;

	if (is_falsy(value))
		return ENCODING_UTF8;
	while (i < ENCODING_OTHER && !pyvalue_is(value, names[i]))
		i++;
	return i;
}

static struct cell_bytes
decode(const struct pyvalue *content, enum encoding encoding)
{
	char *text = content->u.text;
	size_t len = content->count;

	if (encoding == ENCODING_BASE64)
		len = decode_base64(text, len);
	else if (encoding == ENCODING_HEX)
		len = decode_hex(text, len);
	else
		piston_make_text(text, len);
	return (struct cell_bytes){ text, len };
}

/* ---- files: their names ---- */

/* The name that was sent, which may hold anything, or else one by the file's
 * place.  NULL: it is no text. */
static const char *
name_of(struct pyjson *doc, const struct pyvalue *file, size_t index,
    size_t *len)
{
	const struct pyvalue *value = pyvalue_get(file, "name");
	char *text;

	if (!is_falsy(value)) {
		*len = value->count;
		return value->type == PYVALUE_STRING ? value->u.text : NULL;
	}
	text = pyjson_tree_array(doc, NAME_DIGITS, 1);
	(void)snprintf(text, NAME_DIGITS, "file%zu.code", index);
	*len = strlen(text);
	return text;
}

/* Set the path to write to.  NULL, or the fault of the name. */
static const char *
take_path(struct pyjson *doc, struct stage *stage, const struct pyvalue *file,
    size_t index, struct cell_input *input)
{
	static const char *const wrong[] = {
		[STAGE_FINE] = NULL,
		[STAGE_EMPTY] = "is no name of a file",
		[STAGE_LONG] = "is too long",
		[STAGE_FULL] = "is one too many",
		[STAGE_IS_FOLDER] = "is the folder of another file",
		[STAGE_PARENT_IS_FILE] = "lies below another file",
		[STAGE_ABOVE_IS_FILE] = "lies below another file",
	};
	size_t len = 0;
	const char *name = name_of(doc, file, index, &len);
	char *path;
	enum stage_up up;

	if (name == NULL)
		return "must be a string";
	if (memchr(name, '\0', len) != NULL)
		return "must not contain a NUL character";
	path = pyjson_tree_array(doc, len + 2, 1);
	piston_make_text(path, stage_resolve(name, len, path, 0, &up));
	if (up == STAGE_OUT)
		return "leads out of the folder";
	input->path = path;
	return wrong[stage_add(stage, path)];
}

/* ---- files: all of them ---- */

/* Is there a file that can be the program? */
static bool
piston_check_main(const struct pyvalue *list, struct piston_refusal *refusal)
{
	for (const struct pyvalue *file = list->u.parts.first; file != NULL;
	     file = file->next)
		if (encoding_of(file) == ENCODING_UTF8)
			return true;
	return piston_refuse(refusal, 400,
	    "files must include at least one utf8 encoded file");
}

/* The first word is the main file's path, written so that it is no option. */
static void
take_main(struct piston_request *req, const char *path)
{
	size_t size = strlen(path) + 3;
	char *word = pyjson_tree_array(&req->doc, size, 1);

	(void)snprintf(word, size, "%s%s", path[0] == '-' ? "./" : "", path);
	req->words[0] = (struct cell_bytes){ word, strlen(word) };
}

/* Check their names, decode what they hold in its place, and find the program.
 * The words are there by then.  False: something is refused. */
static bool
piston_take_files(struct piston_request *req, const struct pyvalue *list,
    struct piston_refusal *refusal)
{
	auto_stage struct stage stage = { .count = 0 };

	req->inputs = pyjson_tree_array(&req->doc, list->count,
	    sizeof(*req->inputs));
	for (const struct pyvalue *file = list->u.parts.first; file != NULL;
	     file = file->next) {
		struct cell_input *input = &req->inputs[req->input_count];
		enum encoding encoding = encoding_of(file);
		const char *wrong = take_path(&req->doc, &stage, file,
		    req->input_count, input);

		if (wrong != NULL)
			return piston_refuse(refusal, 400, "files[%zu].name %s",
			    req->input_count, wrong);
		input->mtime = -1;
		input->content = decode(pyvalue_get(file, "content"), encoding);
		if (req->words[0].data == NULL &&
		    (encoding == ENCODING_UTF8 || encoding == ENCODING_OTHER))
			take_main(req, input->path);
		req->input_count++;
	}
	return true;
}

bool
piston_is_json(const char *content_type)
{
	return content_type != NULL &&
	    strncmp(content_type, PISTON_JSON, strlen(PISTON_JSON)) == 0;
}

/* The runtime that was asked for is not there. */
static bool
refuse_runtime(struct piston_refusal *refusal, const struct pyvalue *language,
    const struct pyvalue *version)
{
	auto_buf struct buf text = BUF_INIT(PISTON_REFUSAL_MAX / 8);

	buf_add(&text, language->u.text, language->count);
	buf_addc(&text, '-');
	buf_add(&text, version->u.text, version->count);
	buf_adds(&text, " runtime is unknown");
	return piston_refuse_bytes(refusal, 400, buf_str(&text), text.len);
}

/* ---- language, version, files ---- */

bool
piston_parse(struct pyjson *doc, const char *body, size_t len,
    struct piston_refusal *refusal)
{
	auto_buf struct buf text = BUF_INIT(1024);
	struct pyjson_error error;

	/* no body is an object without members */
	if (len == 0) {
		body = "{}";
		len = 2;
	}
	if (!pyjson_parse(doc, body, len, PYJSON_BYTES, &error)) {
		buf_adds(&text, "The body is no JSON: ");
		pyjson_explain(&text, &error);
		return piston_refuse_bytes(refusal, 400, buf_str(&text),
		    text.len);
	}
	if (doc->root.type == PYVALUE_OBJECT || doc->root.type == PYVALUE_ARRAY)
		return true;
	pyjson_release(doc);
	return piston_refuse(refusal, 400, "The body must be a JSON object");
}

/* A text that is there, and not empty. */
static bool
take_word(const struct pyjson *doc, const char *name,
    const struct pyvalue **value, struct piston_refusal *refusal)
{
	*value = pyvalue_get(&doc->root, name);
	if (*value != NULL && (*value)->type == PYVALUE_STRING &&
	    (*value)->count > 0)
		return true;
	return piston_refuse(refusal, 400, "%s is required as a string", name);
}

static const struct pyvalue *
files_of(const struct pyjson *doc)
{
	return pyvalue_get(&doc->root, "files");
}

static bool
check_files(const struct pyjson *doc, struct piston_refusal *refusal)
{
	const struct pyvalue *files = files_of(doc);
	size_t i = 0;

	if (files == NULL || files->type != PYVALUE_ARRAY)
		return piston_refuse(refusal, 400,
		    "files is required as an array");
	for (const struct pyvalue *file = files->u.parts.first; file != NULL;
	     file = file->next, i++) {
		const struct pyvalue *content = pyvalue_get(file, "content");

		if (content == NULL || content->type != PYVALUE_STRING)
			return piston_refuse(refusal, 400,
			    "files[%zu].content is required as a string", i);
	}
	return true;
}

/* ---- limits ---- */

static bool
get_number(const struct pyvalue *value, double *number)
{
	if (value->type == PYVALUE_INT)
		*number = (double)value->u.integer;
	else if (value->type == PYVALUE_BIG)
		*number = strtod(value->u.text, NULL);
	else if (value->type == PYVALUE_FLOAT)
		*number = value->u.real;
	else
		return false;
	return !isnan(*number);
}

/* most: what may be asked for; 0: anything, also less than nothing.  *number is
 * left alone when nothing is asked for. */
static bool
take_limit(const struct pyjson *doc, const char *name, int64_t most,
    double *number, struct piston_refusal *refusal)
{
	const struct pyvalue *value = pyvalue_get(&doc->root, name);

	if (is_nothing(value))
		return true;
	if (!get_number(value, number))
		return piston_refuse(refusal, 400,
		    "If specified, %s must be a number", name);
	if (most > 0 && *number > (double)most)
		return piston_refuse(refusal, 400,
		    "%s cannot exceed the configured limit of %" PRId64, name,
		    most);
	if (most > 0 && *number < 0)
		return piston_refuse(refusal, 400, "%s must be non-negative",
		    name);
	return true;
}

static bool
take_limits(struct piston_request *req, const struct piston_limits *limits,
    struct piston_refusal *refusal)
{
	double wall = (double)limits->run_ms;
	double cpu = wall;
	double memory = 0;
	double unused = 0; /* nothing is compiled */

	if (!take_limit(&req->doc, "compile_memory_limit", 0, &unused,
		refusal) ||
	    !take_limit(&req->doc, "run_memory_limit", 0, &memory, refusal) ||
	    !take_limit(&req->doc, "compile_timeout", limits->compile_ms,
		&unused, refusal) ||
	    !take_limit(&req->doc, "run_timeout", limits->run_ms, &wall,
		refusal) ||
	    !take_limit(&req->doc, "compile_cpu_time", limits->compile_ms,
		&unused, refusal) ||
	    !take_limit(&req->doc, "run_cpu_time", limits->run_ms, &cpu,
		refusal))
		return false;
	req->wall_ms = (int64_t)wall;
	/* a part of one counts, and at least one is needed to end it */
	if ((double)req->wall_ms < wall || req->wall_ms < 1)
		req->wall_ms++;
	req->cpu_us = (int64_t)(cpu * 1000);
	req->memory = memory <= 0 || memory > MEMORY_MAX ? 0 : (int64_t)memory;
	return true;
}

/* ---- input and arguments ---- */

static bool
take_input(struct piston_request *req, struct piston_refusal *refusal)
{
	const struct pyvalue *value = pyvalue_get(&req->doc.root, "stdin");
	size_t len = 0;
	char *text;

	if (!pyvalue_is_absent(value)) {
		if (value->type != PYVALUE_STRING)
			return piston_refuse(refusal, 400,
			    "stdin must be a string");
		len = value->count;
	}
	if (len >= LIMIT_PART)
		return piston_refuse(refusal, 400, "stdin is too long");
	text = pyjson_tree_array(&req->doc, len + 2, 1);
	if (len > 0)
		memcpy(text, value->u.text, len);
	piston_make_text(text, len);
	if (len == 0 || text[len - 1] != '\n')
		text[len++] = '\n';
	req->input = text;
	req->input_len = len;
	return true;
}

/* A number as a text: whole ones without a point, as JavaScript has them. */
static void
write_number(double number, char *text, size_t size)
{
	int digits = 1;

	if (isinf(number)) {
		(void)snprintf(text, size, "%sInfinity", number < 0 ? "-" : "");
	} else if (fabs(number) < 1e21 &&
	    (fabs(number) > EXACT_MAX || number == (double)(int64_t)number)) {
		(void)snprintf(text, size, "%.0f", number == 0 ? 0 : number);
	} else {
		do
			(void)snprintf(text, size, "%.*g", digits, number);
		while (strtod(text, NULL) != number && ++digits <= 17);
	}
}

/* An argument that may be no text.  NULL: nobody could say which one. */
static const char *
argument_text(struct pyjson *doc, const struct pyvalue *value, size_t *len)
{
	char text[64] = "null";
	double number = 0;

	if (value->type == PYVALUE_STRING) {
		*len = value->count;
		return value->u.text;
	}
	if (value->type == PYVALUE_ARRAY || value->type == PYVALUE_OBJECT)
		return NULL;
	if (value->type == PYVALUE_BOOL)
		(void)snprintf(text, sizeof(text), "%s",
		    value->u.truth ? "true" : "false");
	else if (value->type == PYVALUE_INT)
		(void)snprintf(text, sizeof(text), "%" PRId64,
		    value->u.integer);
	else if (value->type != PYVALUE_NULL) {
		if (!get_number(value, &number))
			return NULL;
		write_number(number, text, sizeof(text));
	}
	*len = strlen(text);
	return pyjson_tree_copy(doc, text, *len);
}

static bool
add_argument(struct piston_request *req, const char *text, size_t len,
    struct piston_refusal *refusal)
{
	size_t number = req->word_count - 1;
	char *copy;

	if (memchr(text, '\0', len) != NULL)
		return piston_refuse(refusal, 400,
		    "args[%zu] must not contain a NUL character", number);
	copy = pyjson_tree_copy(&req->doc, text, len);
	piston_make_text(copy, len);
	req->words[req->word_count++] = (struct cell_bytes){ copy, len };
	return true;
}

/* A text becomes an argument for each of its characters. */
static bool
split_argument(struct piston_request *req, const struct pyvalue *args,
    struct piston_refusal *refusal)
{
	const char *text = args->u.text;

	for (size_t at = 0; at < args->count;) {
		size_t len = 1;

		while (at + len < args->count && utf8_is_tail(text[at + len]))
			len++;
		if (!add_argument(req, text + at, len, refusal))
			return false;
		at += len;
	}
	return true;
}

/* The first word has its place by then. */
static bool
take_arguments(struct piston_request *req, const struct pyvalue *args,
    struct piston_refusal *refusal)
{
	if (args == NULL || args->type == PYVALUE_NULL)
		return true;
	if (args->type == PYVALUE_STRING)
		return split_argument(req, args, refusal);
	for (const struct pyvalue *arg = args->u.parts.first; arg != NULL;
	     arg = arg->next) {
		size_t len = 0;
		const char *text = argument_text(&req->doc, arg, &len);

		if (text == NULL)
			return piston_refuse(refusal, 400,
			    "args[%zu] must be a string", req->word_count - 1);
		if (!add_argument(req, text, len, refusal))
			return false;
	}
	return true;
}

static bool
take_words(struct piston_request *req, struct piston_refusal *refusal)
{
	const struct pyvalue *args = pyvalue_get(&req->doc.root, "args");
	bool list = args != NULL &&
	    (args->type == PYVALUE_STRING || args->type == PYVALUE_ARRAY);

	if (args != NULL && args->type != PYVALUE_NULL && !list)
		return piston_refuse(refusal, 400, "args must be an array");
	/* as many as a text has bytes, at most */
	req->words = pyjson_tree_array(&req->doc, (list ? args->count : 0) + 1,
	    sizeof(*req->words));
	req->word_count = 1;
	return take_arguments(req, args, refusal);
}

/* ---- all of it ---- */

static bool
take(struct piston_request *req, const struct piston_limits *limits,
    const struct piston_runtime *runtimes, size_t count,
    struct piston_refusal *refusal)
{
	const struct pyvalue *language;
	const struct pyvalue *version;

	if (!take_word(&req->doc, "language", &language, refusal) ||
	    !take_word(&req->doc, "version", &version, refusal) ||
	    !check_files(&req->doc, refusal))
		return false;
	req->runtime = find_runtime(runtimes, count, language, version, false);
	if (req->runtime == NULL && !limits->strict) {
		req->runtime = find_runtime(runtimes, count, language, version,
		    true);
		req->stands_in = req->runtime != NULL;
	}
	if (req->runtime == NULL)
		return refuse_runtime(refusal, language, version);
	return piston_check_main(files_of(&req->doc), refusal) &&
	    take_limits(req, limits, refusal) && take_input(req, refusal) &&
	    take_words(req, refusal) &&
	    piston_take_files(req, files_of(&req->doc), refusal);
}

bool
piston_take(struct piston_request *req, const struct piston_limits *limits,
    const struct piston_runtime *runtimes, size_t count,
    struct piston_refusal *refusal)
{
	if (take(req, limits, runtimes, count, refusal))
		return true;
	pyjson_release(&req->doc);
	return false;
}

bool
piston_read(struct piston_request *req, const struct piston_limits *limits,
    const struct piston_runtime *runtimes, size_t count, const char *body,
    size_t len, struct piston_refusal *refusal)
{
	memset(req, 0, sizeof(*req));
	return piston_parse(&req->doc, body, len, refusal) &&
	    piston_take(req, limits, runtimes, count, refusal);
}
