/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../sandbox/protocol/frame_limits.h"

#define MEMORY_MAX ((double)((int64_t)1 << 50)) /* as good as none */
#define EXACT_MAX 9007199254740992.0 /* all above are whole numbers */

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

/* Would JavaScript take it for nothing? */
static bool
is_nothing(const struct pyvalue *value)
{
	return value == NULL || value->type == PYVALUE_NULL ||
	    (value->type == PYVALUE_BOOL && !value->u.truth) ||
	    (value->type == PYVALUE_STRING && value->count == 0);
}

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

	if (value != NULL && value->type != PYVALUE_NULL) {
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

		while (at + len < args->count &&
		    ((unsigned char)text[at + len] & 0xc0) == 0x80)
			len++;
		if (!add_argument(req, text + at, len, refusal))
			return false;
		at += len;
	}
	return true;
}

/* The first word is there by then. */
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
	req->runtime = piston_find(runtimes, count, language->u.text,
	    language->count, version->u.text, version->count);
	if (req->runtime == NULL && !limits->strict) {
		req->runtime = piston_nearest(runtimes, count, language->u.text,
		    language->count, version->u.text, version->count);
		req->stands_in = req->runtime != NULL;
	}
	if (req->runtime == NULL)
		return refuse_runtime(refusal, language, version);
	if (!piston_check_main(files_of(&req->doc), refusal) ||
	    !take_limits(req, limits, refusal) || !take_input(req, refusal) ||
	    !take_words(req, refusal) ||
	    !piston_take_files(&req->files, &req->doc, files_of(&req->doc),
		refusal))
		return false;
	req->words[0] = req->files.main;
	return true;
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
