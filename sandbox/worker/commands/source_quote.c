/* SPDX-License-Identifier: MIT */
/* The marks of quotes and lists before the lines of a text. */
#include "source_parts.h"

#include <string.h>

/* Bytes of a quote mark at the begin of a line; a prompt is none. */
static size_t
quote_mark(const char *line)
{
	size_t n = strspn(line, " ");

	if (n > 3 || line[n] != '>' ||
	    (line[n + 1] == '>' && line[n + 2] == '>'))
		return 0;
	return n + 1 + (line[n + 1] == ' ');
}

static bool
is_quoted(const char *text)
{
	bool found = false;

	for (const char *p = text; *p != '\0'; p += *p == '\n') {
		if (quote_mark(p) > 0)
			found = true;
		else if (!source_is_blank_line(p))
			return false;
		p += strcspn(p, "\n");
	}
	return found;
}

void
source_shape_quotes(char *text)
{
	char *to = text;

	if (!is_quoted(text))
		return;
	for (const char *p = text; *p != '\0';) {
		size_t len;

		p += quote_mark(p);
		len = strcspn(p, "\n");
		len += p[len] == '\n';
		memmove(to, p, len);
		to += len;
		p += len;
	}
	*to = '\0';
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
	size_t mark = quote_mark(before);
	size_t margin;
	char *to = text;

	source_line_ends(text);
	mark = mark > len ? len : mark;
	if (mark > 0)
		source_shape_quotes(text);
	margin = list_indentation(before + mark, len - mark);
	for (const char *p = text; *p != '\0';) {
		size_t blanks = strspn(p, " \t");
		size_t n;

		p += blanks < margin ? blanks : margin;
		n = strcspn(p, "\n");
		n += p[n] == '\n';
		memmove(to, p, n);
		to += n;
		p += n;
	}
	*to = '\0';
}
