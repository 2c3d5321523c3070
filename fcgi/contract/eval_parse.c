/* SPDX-License-Identifier: MIT */
/*
 * The steps of a request to /eval, in their order.
 */
#include <stdlib.h>
#include <string.h>

#include "eval_parts.h"
#include "../pytext/pyutf8.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/protocol/frame_limits.h"

#define INTERPRETER_PARTS 5 /* of /snekbin/python/<name>/bin/python */

enum media { MEDIA_JSON, MEDIA_FORM, MEDIA_MULTIPART, MEDIA_OTHER };

/* The case of the type counts, its parameters do not. */
static enum media
media_of(const char *type)
{
	static const struct {
		const char *name;
		enum media media;
	} known[] = {
		{ "", MEDIA_JSON },
		{ "*/*", MEDIA_JSON },
		{ "application/json", MEDIA_JSON },
		{ "application/*", MEDIA_JSON },
		{ "application/x-www-form-urlencoded", MEDIA_FORM },
		{ "multipart/form-data", MEDIA_MULTIPART },
	};
	size_t len = type == NULL ? 0 : strcspn(type, "; \t");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].name) == len &&
		    (len == 0 || memcmp(known[i].name, type, len) == 0))
			return known[i].media;
	return MEDIA_OTHER;
}

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

/* What the Content-Type says decides how. */
static bool
parse_body(struct pyjson *doc, const char *type, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	switch (media_of(type)) {
	case MEDIA_JSON:
		return parse_json(doc, body, len, refusal);
	case MEDIA_FORM:
		return eval_parse_form(doc, body, len, refusal);
	case MEDIA_MULTIPART:
		return eval_refuse_with(refusal, 400, EVAL_TITLE_INVALID,
		    "<MultipartForm object> is not of type 'object'");
	case MEDIA_OTHER:
		break;
	}
	return eval_refuse_with(refusal, 415, EVAL_TITLE_MEDIA,
	    "%s is an unsupported media type.", type);
}

/* ---- the interpreter ---- */

/* The parts of an absolute path, without "." and with ".." undone; how many
 * there are, cut at INTERPRETER_PARTS + 1. */
static size_t
split_path(char *path, const char *parts[INTERPRETER_PARTS + 1])
{
	size_t count = 0;
	char *rest = path;
	char *part;

	while ((part = strsep(&rest, "/")) != NULL) {
		if (part[0] == '\0' || strcmp(part, ".") == 0)
			continue;
		if (strcmp(part, "..") == 0)
			count -= count > 0 ? 1 : 0;
		else if (count <= INTERPRETER_PARTS)
			parts[count++] = part;
		else
			return count;
	}
	return count;
}

/* python, python3 or python3.11. */
static bool
is_python(const char *name, const char *version)
{
	size_t len = strlen("python");

	return strncmp(name, "python", len) == 0 &&
	    (name[len] == '\0' || strcmp(name + len, "3") == 0 ||
		strcmp(name + len, version) == 0);
}

/* Do the parts lead to, or towards, an interpreter on offer? */
static bool
find_name(const struct eval_terms *terms, const char *name, const char **found)
{
	*found = NULL;
	if (strcmp(name, "default") == 0)
		return true;
	for (size_t i = 0; terms->interpreters[i] != NULL; i++)
		if (strcmp(terms->interpreters[i], name) == 0)
			*found = terms->interpreters[i];
	return *found != NULL;
}

/* executable_path: an interpreter, or why there is none. */
static bool
take_interpreter(struct eval_request *req, const struct eval_terms *terms,
    const struct pyvalue *path, struct eval_refusal *refusal)
{
	static const char *const want[] = { "snekbin", "python", NULL, "bin",
		NULL };
	const char *parts[INTERPRETER_PARTS + 1];
	size_t count;
	bool there;

	if (path == NULL || path->count == 0)
		return true;
	there = path->u.text[0] == '/' && strlen(path->u.text) == path->count;
	count = split_path(path->u.text, parts);
	there = there && count <= INTERPRETER_PARTS;
	for (size_t i = 0; i < count && there; i++)
		if (want[i] != NULL)
			there = strcmp(parts[i], want[i]) == 0;
	if (there && count > 2)
		there = find_name(terms, parts[2], &req->interpreter);
	if (there && count == INTERPRETER_PARTS)
		there = is_python(parts[4], parts[2]);
	if (!there)
		return eval_refuse(refusal, 400,
		    "executable_path does not exist");
	if (count < INTERPRETER_PARTS)
		return eval_refuse(refusal, 400,
		    "executable_path is not a file");
	return true;
}

/* ---- arguments and the rest ---- */

/* `args`, or -c, then `input`; without the empty ones at the beginning.  False:
 * one that no program can be given. */
static bool
take_args(struct eval_request *req, const struct pyvalue *root)
{
	const struct pyvalue *args = pyvalue_get(root, "args");
	const struct pyvalue *input = pyvalue_get(root, "input");
	size_t count = args == NULL ? 0 : args->count;
	bool good = true;

	req->args = xcalloc(count + 3, sizeof(*req->args));
	if (args == NULL)
		req->args[req->arg_count++] = "-c";
	for (size_t i = 0; i <= count; i++) {
		const struct pyvalue *arg = i < count ? &args->u.items[i] :
							input;

		if (arg == NULL || (arg->count == 0 && req->arg_count == 0))
			continue;
		good = good && strlen(arg->u.text) == arg->count &&
		    !pyutf8_has_surrogate(arg->u.text, arg->count);
		req->args[req->arg_count++] = arg->u.text;
	}
	return good;
}

/* Standard input and the time, which are ours; then how long it all is. */
static bool
take_extras(struct eval_request *req, const struct pyvalue *root,
    struct eval_refusal *refusal)
{
	const struct pyvalue *input = pyvalue_get(root, "stdin");
	const struct pyvalue *timeout = pyvalue_get(root, "timeout_ms");
	size_t total = 0;

	if (input != NULL) {
		req->input = input->u.text;
		req->input_len = input->count;
	}
	if (timeout != NULL)
		req->timeout_ms = timeout->u.integer;
	for (size_t i = 0; i < req->arg_count; i++)
		total += strlen(req->args[i]) + 1;
	return (total <= LIMIT_PART && req->input_len <= LIMIT_PART) ||
	    eval_refuse_with(refusal, 413, EVAL_TITLE_LARGE, "%s",
		EVAL_TOO_LONG);
}

/* The order of the steps decides which of several faults is told. */
static enum eval_verdict
take(struct eval_request *req, const struct eval_terms *terms,
    struct eval_refusal *refusal)
{
	const struct pyvalue *root = &req->doc.root;

	if (!eval_check_schema(root, refusal) ||
	    !eval_check_extras(root, terms, refusal) ||
	    !take_interpreter(req, terms, pyvalue_get(root, "executable_path"),
		refusal) ||
	    !eval_take_files(req, pyvalue_get(root, "files"), refusal))
		return EVAL_REFUSED;
	if (!eval_stage_files(req, refusal))
		return EVAL_KNOWN;
	if (!take_args(req, root)) {
		(void)eval_refuse_with(refusal, 200, "",
		    "ValueError: embedded null byte");
		return EVAL_KNOWN;
	}
	return take_extras(req, root, refusal) ? EVAL_RUN : EVAL_REFUSED;
}

enum eval_verdict
eval_parse(struct eval_request *req, const struct eval_terms *terms,
    const char *content_type, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	enum eval_verdict verdict = EVAL_REFUSED;

	memset(req, 0, sizeof(*req));
	if (parse_body(&req->doc, content_type, body, len, refusal))
		verdict = take(req, terms, refusal);
	if (verdict != EVAL_RUN)
		eval_release(req);
	return verdict;
}

void
eval_release(struct eval_request *req)
{
	for (size_t i = 0; i < req->file_count; i++)
		free((char *)(uintptr_t)req->files[i].path);
	free(req->files);
	free((void *)(uintptr_t)req->args);
	pyjson_release(&req->doc);
	memset(req, 0, sizeof(*req));
}

void
eval_add_versions(struct buf *out, const struct eval_terms *terms)
{
	const char *const *names = terms->interpreters;

	buf_addf(out, "{\"default\":\"%s\",\"versions\":[",
	    names[0] == NULL ? "" : names[0]);
	for (size_t i = 0; names[i] != NULL; i++)
		buf_addf(out,
		    "%s{\"name\":\"%s\",\"executable_path\":"
		    "\"/snekbin/python/%s/bin/python\"}",
		    i > 0 ? "," : "", names[i], names[i]);
	buf_adds(out, "]}");
}
