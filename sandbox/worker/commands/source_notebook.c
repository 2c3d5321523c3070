/* SPDX-License-Identifier: MIT */
/* The code cells of a Jupyter notebook. */
#include "source_parts.h"

#include <string.h>

#include <jansson.h>

#include "../../base/cleanup.h"
#include "../../base/json_mend.h"

bool
source_may_be_notebook(const char *text)
{
	return text[strspn(text, SOURCE_BLANKS)] == '{' &&
	    strstr(text, "\"cells\"") != NULL &&
	    strstr(text, "\"nbformat\"") != NULL;
}

/* The parser needs some 300 bytes for each object and list, however small it
 * is.  Those that a string shows are none. */
static bool
has_many_objects(const char *text)
{
	size_t count = 0;
	bool string = false;

	for (; *text != '\0'; text++) {
		if (*text == '"')
			string = !string;
		else if (string && *text == '\\' && text[1] != '\0')
			text++;
		else if (!string && (*text == '{' || *text == '[') &&
		    ++count > SOURCE_OBJECTS_MAX)
			return true;
	}
	return false;
}

/* A NUL, which may stand for half a surrogate pair, is shown. */
static void
add_text(struct buf *out, const json_t *text)
{
	const char *p = json_string_value(text);
	const char *end = p + json_string_length(text);

	for (; p < end; p += strlen(p) + 1) {
		buf_adds(out, p);
		if (p + strlen(p) < end)
			buf_adds(out, "\xef\xbf\xbd");
	}
}

/* A cell's source is a text, or its lines. */
static void
add_source(struct buf *out, const json_t *cell)
{
	const json_t *source = json_object_get(cell, "source");
	const json_t *line;
	size_t i;

	if (json_is_string(source))
		add_text(out, source);
	json_array_foreach(source, i, line)
		if (json_is_string(line))
			add_text(out, line);
}

static bool
is_code(const json_t *cell)
{
	const char *type = json_string_value(json_object_get(cell,
	    "cell_type"));

	return type != NULL && strcmp(type, "code") == 0;
}

/* "%%bash" is a language, "%%time" is about its cell alone: below other cells
 * it would be about nothing.  False: the cell is left out. */
static bool
add_magic_cell(struct source *source, struct buf *code)
{
	auto_buf struct buf comment = BUF_INIT(SOURCE_TEXT_MAX + 4);
	const char *text = buf_str(code) + strspn(buf_str(code), SOURCE_BLANKS);
	size_t len;

	if (strncmp(text, "%%", 2) != 0)
		return true;
	len = strspn(text + 2, SOURCE_NAME_CHARS);
	if (source_is_one_of("time timeit capture", text + 2, len)) {
		buf_addf(&comment, "# %s", text);
		buf_reset(code);
		buf_add(code, buf_str(&comment), comment.len);
		return true;
	}
	source_add_other(source, text + 2, len);
	return false;
}

static void
add_cells(struct source *source, const json_t *cells)
{
	auto_buf struct buf code = BUF_INIT(SOURCE_TEXT_MAX);
	const json_t *cell;
	size_t count = 0;
	size_t i;

	json_array_foreach(cells, i, cell)
		count += is_code(cell);
	json_array_foreach(cells, i, cell) {
		if (!is_code(cell))
			continue;
		buf_reset(&code);
		add_source(&code, cell);
		if (count == 1 || add_magic_cell(source, &code))
			source_add(source, buf_str(&code));
	}
	if (source->pieces == 0 && source->other_count == 0)
		source->fault = SOURCE_NO_CODE;
}

/* The language of a notebook; NULL: it does not say. */
static const char *
find_language(const json_t *root)
{
	const json_t *data = json_object_get(root, "metadata");
	const char
	    *name = json_string_value(json_object_get(json_object_get(data,
							  "kernelspec"),
		"language"));

	return name != NULL ?
	    name :
	    json_string_value(json_object_get(json_object_get(data,
						  "language_info"),
		"name"));
}

void
source_read_notebook(struct source *source, const char *text)
{
	json_error_t error;
	json_auto_t *root = NULL;
	const json_t *cells;
	const char *language;

	if (has_many_objects(text)) {
		source->fault = SOURCE_TOO_DEEP;
		return;
	}
	/* it bounds the depth */
	root = json_loads(text, JSON_ALLOW_NUL, &error);
	if (root == NULL) {
		/* what outputs hold says nothing about the code */
		auto_free char *mended = json_mend(text, strlen(text));

		root = json_loads(mended, JSON_ALLOW_NUL, &error);
	}
	if (root == NULL) {
		source->fault = SOURCE_NOT_JSON;
		source->fault_line = error.line;
		return;
	}
	cells = json_object_get(root, "cells");
	if (!json_is_array(cells)) {
		source->fault = SOURCE_NO_CELLS;
		return;
	}
	language = find_language(root);
	if (language != NULL && *language != '\0' &&
	    source_class_of(language, strlen(language)) != CLASS_PYTHON)
		source_add_other(source, language, strlen(language));
	else
		add_cells(source, cells);
	source->certain = source->pieces > 0;
}
