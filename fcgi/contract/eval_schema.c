/* SPDX-License-Identifier: MIT */
#include "eval_parts.h"

#include <stdarg.h>
#include <string.h>

#include "../pytext/pyrepr.h"
#include "../pytext/pyutf8.h"

#define PATTERN "'^(?!/)(?!.*\\\\\\\\0).*$'"

/* "<repr><why>", with the other title that validation has; always false. */
static bool __attribute__((format(printf, 3, 4)))
refuse_value(struct eval_refusal *refusal, const struct pyvalue *value,
    const char *why, ...)
{
	va_list ap;

	(void)eval_refuse_with(refusal, 400, EVAL_TITLE_INVALID, "%s", "");
	pyrepr_add(&refusal->description, value);
	va_start(ap, why);
	buf_addv(&refusal->description, why, ap);
	va_end(ap);
	return false;
}

/* value NULL: it is not there, which is fine. */
static bool
check_type(const struct pyvalue *value, enum pyvalue_type type,
    struct eval_refusal *refusal)
{
	return value == NULL || value->type == type ||
	    refuse_value(refusal, value, " is not of type '%s'",
		type == PYVALUE_STRING	  ? "string" :
		    type == PYVALUE_ARRAY ? "array" :
					    "object");
}

/* The members of the request itself. */
static bool
check_members(const struct pyvalue *root, struct eval_refusal *refusal)
{
	return check_type(pyvalue_get(root, "input"), PYVALUE_STRING,
		   refusal) &&
	    check_type(pyvalue_get(root, "files"), PYVALUE_ARRAY, refusal) &&
	    check_type(pyvalue_get(root, "executable_path"), PYVALUE_STRING,
		refusal) &&
	    check_type(pyvalue_get(root, "args"), PYVALUE_ARRAY, refusal);
}

/* What stands in the two lists, from the last to the first. */
static bool
check_items(const struct pyvalue *files, const struct pyvalue *args,
    struct eval_refusal *refusal)
{
	for (size_t i = files == NULL ? 0 : files->count; i-- > 0;) {
		const struct pyvalue *file = &files->u.items[i];

		if (!check_type(file, PYVALUE_OBJECT, refusal))
			return false;
		if (pyvalue_get(file, "path") == NULL)
			return eval_refuse_with(refusal, 400,
			    EVAL_TITLE_INVALID,
			    "'path' is a required property");
	}
	for (size_t i = args == NULL ? 0 : args->count; i-- > 0;)
		if (!check_type(&args->u.items[i], PYVALUE_STRING, refusal))
			return false;
	return true;
}

/* The pattern: no '/' first, no backslash with a zero, and a line feed only as
 * the last character. */
static bool
matches_pattern(const struct pyvalue *path)
{
	const char *s = path->u.text;
	const char *feed = memchr(s, '\n', path->count);

	return s[0] != '/' && memmem(s, path->count, "\\0", 2) == NULL &&
	    (feed == NULL || feed == s + path->count - 1);
}

/* The members of each file. */
static bool
check_files(const struct pyvalue *files, struct eval_refusal *refusal)
{
	for (size_t i = files == NULL ? 0 : files->count; i-- > 0;) {
		const struct pyvalue *file = &files->u.items[i];
		const struct pyvalue *path = pyvalue_get(file, "path");

		if (!check_type(path, PYVALUE_STRING, refusal))
			return false;
		if (!matches_pattern(path))
			return refuse_value(refusal, path, " does not match %s",
			    PATTERN);
		if (!check_type(pyvalue_get(file, "content"), PYVALUE_STRING,
			refusal))
			return false;
	}
	return true;
}

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
	return check_members(root, refusal) &&
	    check_items(files, args, refusal) && check_files(files, refusal);
}

bool
eval_check_extras(const struct pyvalue *root, const struct eval_terms *terms,
    struct eval_refusal *refusal)
{
	const struct pyvalue *input = pyvalue_get(root, "stdin");
	const struct pyvalue *timeout = pyvalue_get(root, "timeout_ms");
	bool below;

	if (!check_type(input, PYVALUE_STRING, refusal))
		return false;
	if (input != NULL && pyutf8_has_surrogate(input->u.text, input->count))
		return refuse_value(refusal, input,
		    " cannot be encoded in UTF-8");
	if (timeout == NULL)
		return true;
	if (timeout->type != PYVALUE_INT && timeout->type != PYVALUE_BIG)
		return refuse_value(refusal, timeout,
		    " is not of type 'integer'");
	below = timeout->type == PYVALUE_INT ? timeout->u.integer < 1 :
					       timeout->u.text[0] == '-';
	if (below)
		return refuse_value(refusal, timeout,
		    " is less than the minimum of 1");
	if (timeout->type == PYVALUE_INT &&
	    timeout->u.integer <= terms->timeout_max_ms)
		return true;
	return refuse_value(refusal, timeout,
	    " is greater than the maximum of %lld",
	    (long long)terms->timeout_max_ms);
}
