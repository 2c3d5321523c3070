/* SPDX-License-Identifier: MIT */
#include "contract/piston/piston_request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/json.h"
#include "contract/run_files.h"

#include "base/text.h"
#include "protocol/frame_limits.h"

#define NAME_DIGITS 32 /* of "file0.code" */
#define NAME_SHOWN 500 /* code points of a client's text in an error */
#define MEMORY_MAX ((double)((int64_t)1 << 50)) /* as good as none */

/* ---- errors ---- */

bool
piston_refuse(struct piston_refusal *refusal, int status, const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(PISTON_REFUSAL_MAX / 8);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	*refusal = (struct piston_refusal){ .status = status,
		.body = BUF_INIT(PISTON_REFUSAL_MAX) };
	jtext_addf(&refusal->body, JTEXT_UTF8, "{\"message\":\"%.*s\"}",
	    (int)text.len, buf_str(&text));
	return false;
}

/* ---- languages in their versions ---- */

static const char *
piston_language_name(enum piston_language language)
{
	return language == PISTON_BASH ? "bash" : "python";
}

/* Names of a runtime beside its language's.  Python's are those of the program,
 * and the operator's name. */
static json_t *
list_aliases(const struct piston_runtime *runtime)
{
	json_auto_t *own = json_sprintf("python%s", runtime->interpreter);
	json_t *minor;
	json_t *all;

	if (runtime->language == PISTON_BASH)
		return json_pack("[s]", "sh");
	minor = json_sprintf("python%" PRId64 ".%" PRId64,
	    runtime->version.major, runtime->version.minor);
	all = json_pack("[s,s,s,o]", "py", "py3", "python3", minor);
	if (!json_equal(minor, own))
		(void)json_array_append(all, own);
	return all;
}

/* Is that a name of the runtime? */
static bool
answers_to(const struct piston_runtime *runtime, const char *name)
{
	bool found = strcmp(name, piston_language_name(runtime->language)) == 0;
	json_auto_t *aliases = list_aliases(runtime);
	const json_t *alias;
	size_t i;

	json_array_foreach(aliases, i, alias)
		found = found || jtree_is(alias, name);
	return found;
}

/* The newest runtime of a language, or of one of its aliases, whose version
 * matches; the first one of equal versions.  nearest: the one nearest to the
 * version that is asked for.  NULL: there is none. */
static const struct piston_runtime *
find_runtime(const struct piston_runtime *runtimes, size_t count,
    const struct cell_bytes *language, const struct cell_bytes *asked,
    bool nearest)
{
	const struct semver *best = NULL;
	const struct piston_runtime *found = NULL;
	struct semver wanted = { 0 };

	if (nearest && !semver_read_wanted(&wanted, asked->data, asked->len))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const struct semver *version = &runtimes[i].version;

		if (!answers_to(&runtimes[i], language->data) ||
		    !(nearest ?
			    semver_is_nearer(version, best, &wanted) :
			    semver_matches(version, asked->data, asked->len) &&
				(best == NULL ||
				    semver_compare(version, best) > 0)))
			continue;
		found = &runtimes[i];
		best = version;
	}
	return found;
}

/* ---- lists ---- */

json_t *
piston_pack_runtime(const struct piston_runtime *runtime, const char *version)
{
	return json_pack("{s:s,s:o}", "language",
	    piston_language_name(runtime->language), version,
	    json_sprintf("%" PRId64 ".%" PRId64 ".%" PRId64,
		runtime->version.major, runtime->version.minor,
		runtime->version.patch));
}

void
piston_add_runtimes(struct buf *out, const struct piston_runtime *runtimes,
    size_t count)
{
	json_auto_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *item = piston_pack_runtime(&runtimes[i], "version");

		(void)json_object_set_new(item, "aliases",
		    list_aliases(&runtimes[i]));
		(void)json_array_append_new(list, item);
	}
	jtext_add(out, list, JSON_COMPACT);
}

void
piston_add_packages(struct buf *out, const struct piston_runtime *runtimes,
    size_t count)
{
	json_auto_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *item = piston_pack_runtime(&runtimes[i],
		    "language_version");

		(void)json_object_set_new(item, "installed", json_true());
		(void)json_array_append_new(list, item);
	}
	jtext_add(out, list, JSON_COMPACT);
}

/* ---- files: what they hold ---- */

struct piston_file {
	struct cell_bytes content;
	struct cell_bytes name;
	struct cell_bytes encoding;
};

enum encoding { ENCODING_UTF8, ENCODING_BASE64, ENCODING_HEX, ENCODING_OTHER };

/* Decode in place as far as the text is hex, as Buffer.from() does.  Returns
 * the length. */
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

/* The encoding of a file; without a name it is UTF-8. */
static enum encoding
encoding_of(const struct piston_file *file)
{
	static const char *const names[] = { "utf8", "base64", "hex" };
	enum encoding i = ENCODING_UTF8;

	if (file->encoding.len == 0)
		return ENCODING_UTF8;
	while (i < ENCODING_OTHER &&
	    (strlen(names[i]) != file->encoding.len ||
		memcmp(file->encoding.data, names[i], file->encoding.len) != 0))
		i++;
	return i;
}

/* Decode what a file holds in its place.  False: it is no base64. */
static bool
decode_content(const struct cell_bytes *content, enum encoding encoding,
    struct cell_bytes *decoded)
{
	char *text = (char *)(uintptr_t)content->data;
	size_t len = content->len;

	if (encoding == ENCODING_BASE64) {
		if (!base64_decode(text, len, false, text, &len))
			return false;
	} else if (encoding == ENCODING_HEX) {
		len = decode_hex(text, len);
	}
	*decoded = (struct cell_bytes){ text, len };
	return true;
}

/* ---- files: their names ---- */

/* Set the path to write to.  NULL, or the fault of the name. */
static const char *
stage_name(struct jtree *doc, struct stage *stage,
    const struct cell_bytes *name, size_t index, struct cell_input *input)
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
	char *path = jtree_array(doc, name->len + NAME_DIGITS, 1);
	enum stage_up up = STAGE_DOWN;

	if (name->len == 0)
		(void)snprintf(path, NAME_DIGITS, "file%zu.code", index);
	else if (memchr(name->data, '\0', name->len) != NULL)
		return "must not contain a NUL character";
	else
		(void)stage_resolve(name->data, name->len, path, 0, &up);
	if (up == STAGE_OUT)
		return "leads out of the folder";
	input->path = path;
	return wrong[stage_add(stage, path)];
}

/* ---- files: all of them ---- */

/* Is there a file that can be the program? */
static bool
check_main(const struct field_list *list, struct piston_refusal *refusal)
{
	const struct piston_file *files = list->items;

	for (size_t i = 0; i < list->count; i++)
		if (encoding_of(&files[i]) == ENCODING_UTF8)
			return true;
	return piston_refuse(refusal, 400,
	    "files must include at least one utf8 encoded file");
}

/* The first word is the main file's path, written so that it is no option. */
static void
set_main(struct piston_request *req, const char *path)
{
	size_t size = strlen(path) + 3;
	char *word = jtree_array(&req->doc, size, 1);

	(void)snprintf(word, size, "%s%s", path[0] == '-' ? "./" : "", path);
	req->words[0] = (struct cell_bytes){ word, strlen(word) };
}

/* Check the names, decode what the files hold in its place, and find the
 * program.  The words are there by then. */
static bool
set_files(struct piston_request *req, const struct field_list *list,
    struct piston_refusal *refusal)
{
	auto_stage struct stage stage = { .count = 0 };
	const struct piston_file *files = list->items;

	req->inputs = jtree_array(&req->doc, list->count + 1,
	    sizeof(*req->inputs));
	for (size_t i = 0; i < list->count; i++) {
		struct cell_input *input = &req->inputs[req->input_count++];
		enum encoding encoding = encoding_of(&files[i]);
		const char *wrong = stage_name(&req->doc, &stage,
		    &files[i].name, i, input);

		if (wrong != NULL)
			return piston_refuse(refusal, 400, "files[%zu].name %s",
			    i, wrong);
		input->mtime = -1;
		if (!decode_content(&files[i].content, encoding,
			&input->content))
			return piston_refuse(refusal, 400,
			    "files[%zu].content must be base64", i);
		if (req->words[0].data == NULL &&
		    (encoding == ENCODING_UTF8 || encoding == ENCODING_OTHER))
			set_main(req, input->path);
	}
	return true;
}

/* The runtime that was asked for is not there. */
static bool
refuse_runtime(struct piston_refusal *refusal,
    const struct cell_bytes *language, const struct cell_bytes *version)
{
	return piston_refuse(refusal, 400, "%.*s-%.*s runtime is unknown",
	    (int)text_prefix(language->data, language->len, NAME_SHOWN),
	    language->data,
	    (int)text_prefix(version->data, version->len, NAME_SHOWN),
	    version->data);
}

/* ---- the body ---- */

bool
piston_parse(struct jtree *doc, const char *body, size_t len,
    struct piston_refusal *refusal)
{
	struct jtree_error error;

	/* no body is an object without members */
	if (len == 0) {
		body = "{}";
		len = 2;
	}
	return jtree_parse(doc, body, len, &error) ||
	    piston_refuse(refusal, 400, "The body is no JSON: %s", error.text);
}

/* A body as its table reads it. */
struct piston_body {
	struct cell_bytes language;
	struct cell_bytes version;
	struct field_list files;
	struct cell_bytes input;
	const json_t *args;
	/* In milliseconds and bytes; UNSET: nothing was asked for. */
	double compile_timeout;
	double run_timeout;
	double compile_cpu_time;
	double run_cpu_time;
	double compile_memory;
	double run_memory;
};
#define UNSET (-1)

static const struct field file_rows[] = {
	{ "content", FIELD_TEXT, offsetof(struct piston_file, content),
	    .required = true },
	{ "name", FIELD_TEXT, offsetof(struct piston_file, name),
	    .nullable = true },
	{ "encoding", FIELD_TEXT, offsetof(struct piston_file, encoding),
	    .nullable = true },
	{ .name = NULL },
};

#define AT(member) offsetof(struct piston_body, member)
#define MILLISECONDS(name) \
	{ \
#name, FIELD_NUMBER, AT(name), .nullable = true, \
					       .standard = UNSET \
	}
#define BYTES(name, member) \
	{ \
		name, FIELD_NUMBER, AT(member), \
		    .nullable = true, .standard = UNSET, .min = INT64_MIN \
	}

static const struct field body_rows[] = {
	{ "language", FIELD_WORD, AT(language), .required = true },
	{ "version", FIELD_WORD, AT(version), .required = true },
	{ "files", FIELD_LIST, AT(files), .required = true, .items = file_rows,
	    .size = sizeof(struct piston_file) },
	BYTES("compile_memory_limit", compile_memory),
	BYTES("run_memory_limit", run_memory),
	MILLISECONDS(compile_timeout),
	MILLISECONDS(run_timeout),
	MILLISECONDS(compile_cpu_time),
	MILLISECONDS(run_cpu_time),
	{ "stdin", FIELD_TEXT, AT(input), .nullable = true,
	    .max = LIMIT_PART - 1 },
	{ "args", FIELD_ANY, AT(args), .nullable = true },
	{ .name = NULL },
};

/* ---- limits ---- */

/* May so much be asked for?  A limit that was not asked for becomes the
 * most. */
static bool
check_limit(const char *name, int64_t most, double *asked,
    struct piston_refusal *refusal)
{
	if (*asked < 0)
		*asked = (double)most;
	return *asked <= (double)most ||
	    piston_refuse(refusal, 400,
		"%s cannot exceed the configured limit of %" PRId64, name,
		most);
}

static bool
set_limits(struct piston_request *req, struct piston_body *body,
    const struct piston_limits *limits, struct piston_refusal *refusal)
{
	double wall;

	if (!check_limit("compile_timeout", limits->compile_ms,
		&body->compile_timeout, refusal) ||
	    !check_limit("run_timeout", limits->run_ms, &body->run_timeout,
		refusal) ||
	    !check_limit("compile_cpu_time", limits->compile_ms,
		&body->compile_cpu_time, refusal) ||
	    !check_limit("run_cpu_time", limits->run_ms, &body->run_cpu_time,
		refusal))
		return false;
	wall = body->run_timeout;
	req->wall_ms = (int64_t)wall;
	/* A part of one counts, and at least one is needed to end the run. */
	if ((double)req->wall_ms < wall || req->wall_ms < 1)
		req->wall_ms++;
	req->cpu_us = (int64_t)(body->run_cpu_time * 1000);
	if (body->run_memory > 0 && body->run_memory <= MEMORY_MAX)
		req->memory = (int64_t)body->run_memory;
	return true;
}

/* ---- input and arguments ---- */

/* Standard input ends with a newline. */
static void
set_input(struct piston_request *req, const struct cell_bytes *input)
{
	size_t len = input->len;
	char *text = jtree_array(&req->doc, len + 2, 1);

	if (len > 0)
		memcpy(text, input->data, len);
	if (len == 0 || text[len - 1] != '\n')
		text[len++] = '\n';
	req->input = text;
	req->input_len = len;
}

/* Read an argument; one that is no string stands as JSON.  False: it is a list
 * or an object, or has a NUL. */
static bool
set_word(struct jtree *doc, const json_t *value, struct cell_bytes *word)
{
	auto_buf struct buf text = BUF_INIT(64);
	char *copy;

	*word = (struct cell_bytes){ json_string_value(value),
		json_string_length(value) };
	if (json_is_string(value))
		return strlen(word->data) == word->len;
	if (json_is_array(value) || json_is_object(value))
		return false;
	/* the shortest text that is read as the same number */
	for (size_t digits = 15; digits <= 17; digits++) {
		buf_reset(&text);
		jtext_add(&text, value, JSON_REAL_PRECISION(digits));
		if (!json_is_real(value) ||
		    strtod(buf_str(&text), NULL) == json_real_value(value))
			break;
	}
	copy = jtree_array(doc, text.len + 1, 1);
	memcpy(copy, buf_str(&text), text.len);
	*word = (struct cell_bytes){ copy, text.len };
	return true;
}

/* The main file's word has its place by then. */
static bool
set_words(struct piston_request *req, const json_t *args,
    struct piston_refusal *refusal)
{
	const json_t *arg;
	size_t i;

	if (args != NULL && !json_is_array(args))
		return piston_refuse(refusal, 400, "args must be an array");
	req->word_count = json_array_size(args) + 1;
	req->words = jtree_array(&req->doc, req->word_count,
	    sizeof(*req->words));
	json_array_foreach(args, i, arg) {
		if (!set_word(&req->doc, arg, &req->words[i + 1]))
			return piston_refuse(refusal, 400,
			    "args[%zu] must be a string without NUL characters",
			    i);
	}
	return true;
}

/* ---- all of it ---- */

static bool
piston_read_body(struct piston_request *req, const struct piston_limits *limits,
    const struct piston_runtime *runtimes, size_t count,
    struct piston_refusal *refusal)
{
	struct piston_body body = { .args = NULL };
	struct field_error error;

	if (!fields_read(&req->doc, body_rows, req->doc.root, &body, &error)) {
		auto_buf struct buf text = BUF_INIT(1024);

		field_error_add(&text, &error);
		return piston_refuse(refusal, 400, "%s", buf_str(&text));
	}
	req->runtime = find_runtime(runtimes, count, &body.language,
	    &body.version, false);
	if (req->runtime == NULL && !limits->strict) {
		req->runtime = find_runtime(runtimes, count, &body.language,
		    &body.version, true);
		req->stands_in = req->runtime != NULL;
	}
	if (req->runtime == NULL)
		return refuse_runtime(refusal, &body.language, &body.version);
	set_input(req, &body.input);
	return check_main(&body.files, refusal) &&
	    set_limits(req, &body, limits, refusal) &&
	    set_words(req, body.args, refusal) &&
	    set_files(req, &body.files, refusal);
}

bool
piston_accept(struct piston_request *req, const struct piston_limits *limits,
    const struct piston_runtime *runtimes, size_t count,
    struct piston_refusal *refusal)
{
	if (piston_read_body(req, limits, runtimes, count, refusal))
		return true;
	jtree_release(&req->doc);
	return false;
}

bool
piston_read(struct piston_request *req, const struct piston_limits *limits,
    const struct piston_runtime *runtimes, size_t count, const char *body,
    size_t len, struct piston_refusal *refusal)
{
	memset(req, 0, sizeof(*req));
	return piston_parse(&req->doc, body, len, refusal) &&
	    piston_accept(req, limits, runtimes, count, refusal);
}
