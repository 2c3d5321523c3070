/* SPDX-License-Identifier: MIT */
#include "files.h"

#include <stdio.h>
#include <string.h>

#include "refusal.h"
#include "../stage.h"
#include "../../pytext/pyjson.h"

#define NAME_DIGITS 32 /* of "file0.code" */

enum encoding { ENCODING_UTF8, ENCODING_BASE64, ENCODING_HEX, ENCODING_OTHER };

/* ---- what a file holds ---- */

void
piston_make_text(char *text, size_t len)
{
	static const unsigned char replacement[] = { 0xef, 0xbf, 0xbd };
	unsigned char *s = (unsigned char *)text;

	for (size_t i = 0; i + 2 < len; i++)
		if (s[i] == 0xed && s[i + 1] >= 0xa0)
			memcpy(s + i, replacement, sizeof(replacement));
}

static int
base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

size_t
piston_decode_base64(const char *text, size_t len, char *out)
{
	unsigned bits = 0;
	int count = 0; /* of bits */
	size_t n = 0;

	for (size_t i = 0; i < len && text[i] != '='; i++) {
		int digit = base64_digit(text[i]);

		if (digit < 0)
			continue;
		bits = (bits << 6 | (unsigned)digit) & 0xffff;
		count += 6;
		if (count >= 8) {
			count -= 8;
			out[n++] = (char)(bits >> count & 0xff);
		}
	}
	return n;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t
piston_decode_hex(const char *text, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		int high = hex_digit(text[i]);
		int low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			break;
		out[n++] = (char)(high << 4 | low);
	}
	return n;
}

static enum encoding
encoding_of(const struct pyvalue *file)
{
	static const char *const names[] = { "utf8", "base64", "hex" };
	const struct pyvalue *value = pyvalue_get(file, "encoding");

	if (value == NULL || value->type == PYVALUE_NULL ||
	    (value->type == PYVALUE_BOOL && !value->u.truth) ||
	    (value->type == PYVALUE_INT && value->u.integer == 0) ||
	    (value->type == PYVALUE_STRING && value->count == 0))
		return ENCODING_UTF8;
	if (value->type == PYVALUE_STRING)
		for (int i = ENCODING_UTF8; i < ENCODING_OTHER; i++)
			if (strlen(names[i]) == value->count &&
			    memcmp(names[i], value->u.text, value->count) == 0)
				return (enum encoding)i;
	return ENCODING_OTHER;
}

static struct cell_bytes
decode(const struct pyvalue *content, enum encoding encoding)
{
	char *text = content->u.text;
	size_t len = content->count;

	if (encoding == ENCODING_BASE64)
		len = piston_decode_base64(text, len, text);
	else if (encoding == ENCODING_HEX)
		len = piston_decode_hex(text, len, text);
	else
		piston_make_text(text, len);
	return (struct cell_bytes){ text, len };
}

/* ---- their names ---- */

/* Does a path lead out of where it begins? */
static bool
leaves(const char *path, size_t len)
{
	size_t depth = 0;

	for (size_t i = 0; i < len;) {
		const char *slash = memchr(path + i, '/', len - i);
		size_t part = (slash == NULL ? len : (size_t)(slash - path)) -
		    i;

		if (part == 2 && memcmp(path + i, "..", 2) == 0) {
			if (depth == 0)
				return true;
			depth--;
		} else if (part > 1 || (part == 1 && path[i] != '.')) {
			depth++;
		}
		i += part + 1;
	}
	return false;
}

/* What was sent, or the name of one that has none; it may hold anything.  NULL:
 * it is no text. */
static const char *
name_of(struct pyjson *doc, const struct pyvalue *file, size_t index,
    size_t *len)
{
	const struct pyvalue *value = pyvalue_get(file, "name");
	bool none = value == NULL || value->type == PYVALUE_NULL ||
	    (value->type == PYVALUE_BOOL && !value->u.truth) ||
	    (value->type == PYVALUE_INT && value->u.integer == 0) ||
	    (value->type == PYVALUE_STRING && value->count == 0);
	char *text;

	if (!none) {
		*len = value->count;
		return value->type == PYVALUE_STRING ? value->u.text : NULL;
	}
	text = pyjson_tree_array(doc, NAME_DIGITS, 1);
	(void)snprintf(text, NAME_DIGITS, "file%zu.code", index);
	*len = strlen(text);
	return text;
}

/* The path to write to.  NULL, or what is wrong with it. */
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
	bool up = false;

	if (name == NULL)
		return "must be a string";
	if (memchr(name, '\0', len) != NULL)
		return "must not contain a NUL character";
	if (leaves(name, len))
		return "leads out of the folder";
	path = pyjson_tree_array(doc, len + 2, 1);
	piston_make_text(path, stage_resolve(name, len, path, 0, &up));
	input->path = path;
	return wrong[stage_add(stage, path)];
}

/* ---- all of them ---- */

bool
piston_check_main(const struct pyvalue *list, struct piston_refusal *refusal)
{
	for (const struct pyvalue *file = list->u.parts.first; file != NULL;
	     file = file->next)
		if (encoding_of(file) == ENCODING_UTF8)
			return true;
	return piston_refuse(refusal, 400,
	    "files must include at least one utf8 encoded file");
}

/* The main file's path, so that it is no option. */
static void
take_main(struct piston_files *files, struct pyjson *doc, const char *path)
{
	size_t size = strlen(path) + 3;
	char *word = pyjson_tree_array(doc, size, 1);

	(void)snprintf(word, size, "%s%s", path[0] == '-' ? "./" : "", path);
	files->main = (struct cell_bytes){ word, strlen(word) };
}

bool
piston_take_files(struct piston_files *files, struct pyjson *doc,
    const struct pyvalue *list, struct piston_refusal *refusal)
{
	auto_stage struct stage stage = { .count = 0 };

	*files = (struct piston_files){ .items = pyjson_tree_array(doc,
					    list->count,
					    sizeof(*files->items)) };
	for (const struct pyvalue *file = list->u.parts.first; file != NULL;
	     file = file->next) {
		struct cell_input *input = &files->items[files->count];
		enum encoding encoding = encoding_of(file);
		const char *wrong = take_path(doc, &stage, file, files->count,
		    input);

		if (wrong != NULL)
			return piston_refuse(refusal, 400, "files[%zu].name %s",
			    files->count, wrong);
		input->mtime = -1;
		input->content = decode(pyvalue_get(file, "content"), encoding);
		if (files->main.data == NULL &&
		    (encoding == ENCODING_UTF8 || encoding == ENCODING_OTHER))
			take_main(files, doc, input->path);
		files->count++;
	}
	return true;
}
