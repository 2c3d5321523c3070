/* SPDX-License-Identifier: MIT */
/* Typed, pasted or quoted text becomes Python: each step changes the text in
 * place and only makes it shorter. */
#include "source_parts.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "../../base/utf8.h"

#define LEVELS_MOST 100 /* of indentation, as Python has it */
#define TAB 8
#define ESCAPES_MOST 65536 /* bytes of a text that may be one line */
#define COOKIE_LINES 2	   /* Python looks for an encoding there */

static void
cut(char *at, size_t len)
{
	memmove(at, at + len, strlen(at + len) + 1);
}

size_t
source_line_length(const char *line)
{
	size_t len = strcspn(line, "\n");

	return len + (line[len] == '\n');
}

char *
source_keep(char *to, const char *from, size_t len)
{
	memmove(to, from, len);
	return to + len;
}

void
source_line_ends(char *text)
{
	char *to = text;

	for (const char *p = text; *p != '\0'; p++)
		if (*p != '\r')
			*to++ = *p;
		else if (p[1] != '\n')
			*to++ = '\n';
	*to = '\0';
}

/* A field of one line takes no line end, so people type "\n".  Outside of
 * strings that is nothing in Python. */
static void
shape_escapes(char *text)
{
	struct source_scan scan = { .at = text, .stops = true };
	struct source_line line;
	const char *from = text;

	if (strchr(text, '\n') != NULL || strlen(text) > ESCAPES_MOST)
		return;
	while (source_scan_next(&scan, &line) && line.escape != NULL) {
		text = source_keep(text, from, (size_t)(line.escape - from));
		*text++ = '\n';
		from = line.escape + 2;
		scan = (struct source_scan){ .at = from, .stops = true };
	}
	memmove(text, from, strlen(from) + 1);
}

/* ---- prompts ---- */

/* Bytes of "In [12]: ", 0: there is none. */
static size_t
numbered_prompt(const char *line)
{
	size_t n = 4;
	size_t digits;

	if (strncmp(line, "In [", n) != 0)
		return 0;
	digits = strspn(line + n, "0123456789");
	n += digits;
	if (digits == 0 || strncmp(line + n, "]:", 2) != 0)
		return 0;
	return n + 2 + (line[n + 2] == ' ');
}

/* Bytes of a prompt at the begin, and of the blanks before it.  goes_on: the
 * line before was code. */
static size_t
prompt_length(const char *line, bool goes_on)
{
	size_t n = strspn(line, " \t");
	size_t more;

	if (strncmp(line + n, ">>>", 3) == 0)
		return n + 3 + (line[n + 3] == ' ');
	more = numbered_prompt(line + n);
	if (more > 0)
		return n + more;
	if (!goes_on || strncmp(line + n, "...", 3) != 0)
		return 0;
	n += line[n + 3] == ':' ? 4 : 3;
	return n + (line[n] == ' ');
}

static size_t
count_prompts(const char *text)
{
	size_t count = 0;

	for (; *text != '\0'; text += source_line_length(text))
		count += prompt_length(text, count > 0) > 0;
	return count;
}

/* Is it the greeting of an interpreter? */
static bool
is_banner(const char *text)
{
	return (strncmp(text, "Python ", 7) == 0 &&
		   isdigit((unsigned char)text[7])) ||
	    strncmp(text, "IPython ", 8) == 0;
}

/* Does a transcript begin here, if it is one? */
static bool
begins_transcript(const char *first)
{
	return prompt_length(first, false) > 0 || is_banner(first);
}

/* Does the line end so that the next one belongs to it? */
static bool
expects_more(const char *line, size_t len)
{
	while (len > 0 && strchr(" \t", line[len - 1]) != NULL)
		len--;
	return len > 0 && strchr(":([{,\\", line[len - 1]) != NULL;
}

/* Discord quotes all that is behind one such mark. */
static bool
is_quote_of_code(const char *text, const char *first)
{
	const char *rest = first + strcspn(first, "\n");

	return strncmp(first, ">>> ", 4) == 0 && count_prompts(text) == 1 &&
	    source_looks(rest);
}

/* A transcript's lines with a prompt are code.  Where the shell shows none, so
 * are the indented lines of a block that such a line has begun.  False: the
 * text is no transcript, or may be a quote, which Discord marks with one
 * prompt. */
static bool
shape_prompts(char *text, bool transcript)
{
	char *first = text + strspn(text, SOURCE_BLANKS);
	size_t prompts = count_prompts(text);
	char *to = text;
	bool code = false;
	bool block = false;

	if (prompts == 0 || (!transcript && !begins_transcript(first)))
		return false;
	if (!transcript && is_quote_of_code(text, first)) {
		cut(first, 4);
		return false;
	}
	for (const char *p = text; *p != '\0';) {
		size_t prompt = prompt_length(p, code);
		size_t len;

		code = prompt > 0 ||
		    (block && (*p == ' ' || *p == '\t') &&
			!source_is_blank_line(p));
		p += prompt;
		len = strcspn(p, "\n");
		block = code &&
		    (expects_more(p, len) || (block && prompt == 0));
		len += p[len] == '\n';
		if (code)
			to = source_keep(to, p, len);
		p += len;
	}
	*to = '\0';
	return prompts > 1;
}

/* ---- blanks ---- */

/* Odd blanks before a line become blanks, unseen characters go. */
static void
shape_blanks(char *text)
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	char *to = text;

	while (source_scan_next(&scan, &line)) {
		size_t blanks = line.in_string ? 0 : line.blanks;
		const char *p = line.text;
		const char *seen = p + blanks;

		while (p < seen) {
			size_t step;
			uint32_t code = source_decode(p, &step);

			if (code <= 0x7f)
				*to++ = *p;
			else if (utf8_is_blank(code))
				*to++ = ' ';
			p += step;
		}
		to = source_keep(to, seen, (size_t)(scan.at - seen));
	}
	*to = '\0';
}

/* Odd characters at the very end go. */
static void
shape_end(char *text)
{
	char *end = text;

	for (size_t step; *text != '\0'; text += step)
		if (!source_is_odd(source_decode(text, &step)))
			end = text + step;
	*end = '\0';
}

/* ---- what stands before the code ---- */

/* A mark on a line of its own goes with that line. */
static void
shape_begin(char *text)
{
	char *begin = text + strspn(text, SOURCE_BLANKS);
	char *end = begin;
	size_t n;

	while ((n = source_tag_word(end)) > 0)
		end += n;
	if (end > begin && end[-1] == '\n')
		begin = text;
	cut(begin, (size_t)(end - begin));
}

/* ---- indentation ---- */

/* Indentation is measured, and cut, for the first statement, for the others,
 * and for lines that begin within strings. */
enum part {
	PART_FIRST,
	PART_OTHERS,
	PART_STRINGS,
	PART_COUNT,
};

static bool
is_statement_line(const struct source_line *line)
{
	return line->code && !line->in_string && !line->inner;
}

/* The part that the line belongs to; *first: it is the first statement, or
 * before that. */
static enum part
part_of(const struct source_line *line, bool *first)
{
	enum part part = line->in_string ? PART_STRINGS :
	    *first			 ? PART_FIRST :
					   PART_OTHERS;

	*first = *first && !is_statement_line(line);
	return part;
}

/* Columns of the blanks before a line, behind the first `margin` bytes. */
static size_t
column(const struct source_line *line, size_t margin)
{
	size_t columns = 0;

	for (size_t i = margin; i < line->blanks; i++)
		columns = line->text[i] == '\t' ?
		    columns - columns % TAB + TAB :
		    columns + 1;
	return columns;
}

/* Would Python take the indentation, were it less by the margins? */
static bool
is_aligned(const char *text, const size_t margins[])
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	size_t levels[LEVELS_MOST] = { 0 };
	size_t top = 0;
	bool opened = false;
	bool first = true;

	for (; source_scan_next(&scan, &line);
	     opened = line.code ? line.opens : opened) {
		size_t margin = margins[part_of(&line, &first)];
		size_t at;

		if (!is_statement_line(&line))
			continue;
		at = column(&line, margin);
		if (opened && at > levels[top] && top + 1 < LEVELS_MOST)
			levels[++top] = at;
		while (!opened && top > 0 && at < levels[top])
			top--;
		if (at != levels[top])
			return false;
	}
	return true;
}

/* The least indentation of each part in bytes; SIZE_MAX: it has no line. */
static void
measure(const char *text, size_t least[])
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	bool first = true;

	for (int part = 0; part < PART_COUNT; part++)
		least[part] = SIZE_MAX;
	while (source_scan_next(&scan, &line)) {
		size_t blanks = strspn(line.text, " \t");
		enum part part = part_of(&line, &first);

		if ((line.in_string ? !source_is_blank_line(line.text) :
				      is_statement_line(&line)) &&
		    blanks < least[part])
			least[part] = blanks;
	}
}

static void
cut_margins(char *text, const size_t margins[])
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	char *to = text;
	bool first = true;

	while (source_scan_next(&scan, &line)) {
		size_t margin = margins[part_of(&line, &first)];
		const char *from = line.text;
		size_t n = strspn(from, " \t");

		from += n < margin ? n : margin;
		to = source_keep(to, from, (size_t)(scan.at - from));
	}
	*to = '\0';
}

/* Indentation that all lines share, or all but the first, was not meant. */
static void
shape_margin(char *text)
{
	size_t least[PART_COUNT];
	size_t margins[PART_COUNT] = { 0 };
	size_t first;
	size_t others;

	measure(text, least);
	first = least[PART_FIRST];
	others = least[PART_OTHERS] == SIZE_MAX ? 0 : least[PART_OTHERS];
	if (first == SIZE_MAX || (first == 0 && others == 0) ||
	    is_aligned(text, margins))
		return;
	margins[PART_FIRST] = first;
	margins[PART_OTHERS] = first > 0 && first < others ? first : others;
	if (first == 0 && !is_aligned(text, margins))
		return;
	if (least[PART_STRINGS] != SIZE_MAX &&
	    least[PART_STRINGS] >= margins[PART_OTHERS])
		margins[PART_STRINGS] = margins[PART_OTHERS];
	cut_margins(text, margins);
}

/* ---- a declared encoding ---- */

/* Is what follows "coding:" a name of another encoding? */
static bool
is_encoding(const char *name)
{
	name += strspn(name, " \t");
	return *name != '\0' && strchr(SOURCE_NAME_CHARS "-.", *name) != NULL &&
	    strncasecmp(name, "utf-8", 5) != 0 &&
	    strncasecmp(name, "utf8", 4) != 0;
}

/* Disarm each "coding: latin-1" of a comment. */
static void
shape_comment(char *line, size_t len)
{
	static const char word[] = "coding";
	const char *end = line + len;

	while ((line = memmem(line, (size_t)(end - line), word,
		    sizeof(word) - 1)) != NULL) {
		line += sizeof(word) - 1;
		if (line < end && (*line == ':' || *line == '=') &&
		    is_encoding(line + 1))
			*line = ' ';
	}
}

/* A text has been decoded already, whatever it says of itself: Python would
 * decode it a second time.  Lines keep their numbers. */
static void
shape_cookie(char *text)
{
	for (int i = 0; i < COOKIE_LINES && *text != '\0'; i++) {
		size_t len = strcspn(text, "\n");
		size_t blanks = strspn(text, " \t\f");

		if (text[blanks] == '#')
			shape_comment(text, len);
		else if (blanks < len)
			break;
		text += len + (text[len] == '\n');
	}
}

bool
source_shape(char *text, bool transcript)
{
	bool prompts;

	source_line_ends(text);
	shape_escapes(text);
	source_shape_quotes(text);
	prompts = shape_prompts(text, transcript);
	shape_blanks(text);
	shape_end(text);
	shape_begin(text);
	shape_margin(text);
	shape_cookie(text);
	return prompts;
}
