/* SPDX-License-Identifier: MIT */
#include "eval_schema.h"

#include <stdarg.h>
#include <string.h>

#include "../pytext/pydump.h"
#include "../pytext/pyutf8.h"

#define PATTERN "'^(?!/)(?!.*\\\\\\\\0).*$'"

/* "<repr><why>", with the other title that validation has; always false. */
static bool __attribute__((format(printf, 3, 4)))
refuse_value(struct eval_refusal *refusal, const struct pyvalue *value,
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

static bool
check_type(const struct pyvalue *value, enum pyvalue_type type,
    struct eval_refusal *refusal)
{
	return value->type == type ||
	    refuse_value(refusal, value, " is not of type '%s'",
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
			return refuse_value(refusal, path, " does not match %s",
			    PATTERN);
		if (!check_member(file, "content", PYVALUE_STRING, refusal))
			return false;
	}
	return true;
}

/* Breadth first, as the validator ranks faults: the whole, its members, the
 * items of lists, the members of these. */
bool
eval_check_schema(const struct pyvalue *root, struct eval_refusal *refusal)
{
	const struct pyvalue *files = pyvalue_get(root, "files");
	const struct pyvalue *args = pyvalue_get(root, "args");

	if (!check_type(root, PYVALUE_OBJECT, refusal))
		return false;
	if (pyvalue_get(root, "input") == NULL && args == NULL)
		return refuse_value(refusal, root,
		    " is not valid under any of the given schemas");
	return check_member(root, "input", PYVALUE_STRING, refusal) &&
	    check_member(root, "files", PYVALUE_ARRAY, refusal) &&
	    check_member(root, "executable_path", PYVALUE_STRING, refusal) &&
	    check_member(root, "args", PYVALUE_ARRAY, refusal) &&
	    check_items(files, args, refusal) && check_files(files, refusal);
}

/* In the style of the validator, though it knows none of these. */
bool
eval_take_extras(struct eval_request *req, const struct eval_terms *terms,
    struct eval_refusal *refusal)
{
	const struct pyvalue *root = &req->doc.root;
	const struct pyvalue *input = pyvalue_get(root, "stdin");
	const struct pyvalue *timeout = pyvalue_get(root, "timeout_ms");

	if (!check_member(root, "stdin", PYVALUE_STRING, refusal))
		return false;
	if (input != NULL && pyutf8_has_surrogate(input->u.text, input->count))
		return refuse_value(refusal, input,
		    " cannot be encoded in UTF-8");
	if (input != NULL) {
		req->input = input->u.text;
		req->input_len = input->count;
	}
	if (timeout == NULL)
		return true;
	if (!pyvalue_integer(timeout, &req->timeout_ms))
		return refuse_value(refusal, timeout,
		    " is not of type 'integer'");
	if (req->timeout_ms < 1)
		return refuse_value(refusal, timeout,
		    " is less than the minimum of 1");
	return req->timeout_ms <= terms->timeout_max_ms ||
	    refuse_value(refusal, timeout,
		" is greater than the maximum of %lld",
		(long long)terms->timeout_max_ms);
}
