/* SPDX-License-Identifier: MIT */
/* Quotes and lists put marks before the lines of a text. */
#include "source_parts.h"

#include <string.h>

/* Bytes of a quote mark at the begin of a line; a prompt is none. */
static size_t
quote_mark(const char *line, size_t most)
{
	size_t n = strspn(line, " ");

	if (n > 3 || line[n] != '>' ||
	    (line[n + 1] == '>' && line[n + 2] == '>'))
		return 0;
	n += 1 + (size_t)(line[n + 1] == ' ');
	return n < most ? n : most;
}

/* Bytes of the blanks at the begin of a line. */
static size_t
margin(const char *line, size_t most)
{
	size_t n = strspn(line, " \t");

	return n < most ? n : most;
}

/* Cut those bytes off each line. */
static void
cut_begins(char *text, size_t (*begin)(const char *line, size_t most),
    size_t most)
{
	char *to = text;

	for (const char *p = text; *p != '\0';) {
		size_t len;

		p += begin(p, most);
		len = source_line_length(p);
		to = source_keep(to, p, len);
		p += len;
	}
	*to = '\0';
}

static bool
is_quoted(const char *text)
{
	bool found = false;

	for (; *text != '\0'; text += source_line_length(text)) {
		if (quote_mark(text, SIZE_MAX) > 0)
			found = true;
		else if (!source_is_blank_line(text))
			return false;
	}
	return found;
}

void
source_shape_quotes(char *text)
{
	if (is_quoted(text))
		cut_begins(text, quote_mark, SIZE_MAX);
}

/* Bytes of the marks of a list before a fence, and of the blanks around them;
 * 0: other text is there. */
static size_t
list_indentation(const char *before, size_t len)
{
	size_t n = strspn(before, " \t-*+0123456789.)");

	return n >= len ? len : 0;
}

void
source_shape_input(char *text, const char *before, size_t len)
{
	size_t mark = quote_mark(before, len);

	source_line_ends(text);
	if (mark > 0)
		source_shape_quotes(text);
	cut_begins(text, margin, list_indentation(before + mark, len - mark));
}
