/* SPDX-License-Identifier: MIT */
/* Typed, pasted or quoted text becomes Python: each step changes the text in
 * place and only makes it shorter. */
#include "worker/commands/source_parts.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define STDIN_OPTION " stdin:"
#define OPTION_MOST 64	/* bytes of a flag or a version */
#define LEVELS_MOST 100 /* of indentation, as Python has it */
#define TAB 8
#define ESCAPES_MOST 65536 /* bytes of a text that may be one line */
#define COOKIE_LINES 2	   /* Python looks for an encoding there */

static void
cut(char *at, size_t len)
{
	memmove(at, at + len, strlen(at + len) + 1);
}

/* Bytes of a line with its end. */
static size_t
line_length(const char *line)
{
	size_t len = strcspn(line, "\n");

	return len + (line[len] == '\n');
}

/* Move len bytes to an earlier place in the same text; returns its end. */
static char *
shape_move(char *to, const char *from, size_t len)
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

/* Does the text begin with a line that has nothing but blanks? */
static bool
is_blank_line(const char *line)
{
	line += source_blanks(line);
	return *line == '\n' || *line == '\0';
}

/* ---- fences ---- */

/* Discord reads back-ticks as fences; people type other characters, too: U+00B4
 * and U+FF40.  Count those that begin here; *len: their bytes. */
static size_t
count_false_ticks(const char *p, size_t *len)
{
	size_t count = 0;

	for (*len = 0;; count++)
		if (strncmp(p + *len, "\xc2\xb4", 2) == 0)
			*len += 2;
		else if (strncmp(p + *len, "\xef\xbd\x80", 3) == 0)
			*len += 3;
		else
			return count;
}

void
source_mend_fences(char *text)
{
	const char *p = text + strspn(text, SOURCE_BLANKS);
	char *to = text;
	bool begins = true; /* nothing but blanks is before it in its line */
	size_t len;

	if (count_false_ticks(p, &len) < SOURCE_FENCE)
		return;
	for (p = text; *p != '\0';) {
		size_t count = count_false_ticks(p, &len);

		if (count >= SOURCE_FENCE &&
		    (begins ||
			strchr("\n", p[len + strspn(p + len, " \t\r")]) !=
			    NULL)) {
			memset(to, '`', count);
			to += count;
		} else {
			len = len > 0 ? len : 1;
			memmove(to, p, len);
			to += len;
		}
		begins = *p == '\n' || (begins && (*p == ' ' || *p == '\t'));
		p += len;
	}
	*to = '\0';
}

/* ---- a command of ours ---- */

/* People copy commands from our own messages. */

/* Cut off the flags and the version that the text ends with, in any order. */
static void
cut_options(char *text)
{
	size_t from = 0;
	size_t at = strlen(text);
	size_t len;

	do {
		len = from + at;
		from = len > OPTION_MOST ? len - OPTION_MOST : 0;
	} while (source_match(SOURCE_OPTION, text + from, len - from, &at) > 0);
	text[len] = '\0';
}

/* The last byte of the string that begins here, or this quote if nothing closes
 * it. */
static char *
shape_skip_string(char *p)
{
	bool triple = source_is_triple(p, *p);
	const char *end = source_string_end(p + (triple ? 3 : 1), *p, triple,
	    false);

	return *end != *p ? p : p + (end - p) + (triple ? 2 : 0);
}

/* The last "stdin:" that no string and no bracket of the code holds, with the
 * blank before it; NULL: there is none. */
static char *
find_stdin(char *text)
{
	char *found = NULL;
	size_t depth = 0;

	for (char *p = text; *p != '\0'; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		else if (*p == '"' || *p == '\'')
			p = shape_skip_string(p);
		else if (strchr("([{", *p) != NULL)
			depth++;
		else if (strchr(")]}", *p) != NULL)
			depth -= depth > 0;
		else if (depth == 0 &&
		    strncmp(p, STDIN_OPTION, sizeof(STDIN_OPTION) - 1) == 0)
			found = p;
	}
	return found;
}

void
source_read_command(char *text, struct buf *input)
{
	size_t n = source_match(SOURCE_COMMAND, text, strcspn(text, "\n"),
	    NULL);
	char *at;

	if (n == 0)
		return;
	cut(text, n);
	cut_options(text);
	/* its value is the rest of the text */
	at = find_stdin(text);
	if (at == NULL)
		return;
	buf_adds(input, at + sizeof(STDIN_OPTION) - 1);
	*at = '\0';
	cut_options(text);
}

/* ---- quotes and lists ---- */

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
		len = line_length(p);
		to = shape_move(to, p, len);
		p += len;
	}
	*to = '\0';
}

static bool
is_quoted(const char *text)
{
	bool found = false;

	for (; *text != '\0'; text += line_length(text)) {
		if (quote_mark(text, SIZE_MAX) > 0)
			found = true;
		else if (!is_blank_line(text))
			return false;
	}
	return found;
}

/* Cut the marks of a quote off, in place, if all lines have one. */
static void
shape_quotes(char *text)
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
		shape_quotes(text);
	cut_begins(text, margin, list_indentation(before + mark, len - mark));
}

/* ---- line ends ---- */

/* People type "\n" in a field of one line, which takes no line ends.  Outside
 * of strings that is no Python. */
static void
shape_escapes(char *text)
{
	struct source_scan scan = { .at = text, .stops = true };
	struct source_line line;
	const char *from = text;

	if (strchr(text, '\n') != NULL || strlen(text) > ESCAPES_MOST)
		return;
	while (source_scan_next(&scan, &line) && line.escape != NULL) {
		text = shape_move(text, from, (size_t)(line.escape - from));
		*text++ = '\n';
		from = line.escape + 2;
		scan = (struct source_scan){ .at = from, .stops = true };
	}
	memmove(text, from, strlen(from) + 1);
}

/* ---- prompts ---- */

/* Bytes of a prompt at the begin, and of the blanks before it.  goes_on: the
 * line before was code. */
static size_t
prompt_length(const char *line, bool goes_on)
{
	return source_match(goes_on ? SOURCE_GOES_ON : SOURCE_PROMPT, line,
	    strcspn(line, "\n"), NULL);
}

static size_t
count_prompts(const char *text)
{
	size_t count = 0;

	for (; *text != '\0'; text += line_length(text))
		count += prompt_length(text, count > 0) > 0;
	return count;
}

/* Does the line end so that the next one belongs to it? */
static bool
expects_more(const char *line, size_t len)
{
	while (len > 0 && strchr(" \t", line[len - 1]) != NULL)
		len--;
	return len > 0 && strchr(":([{,\\", line[len - 1]) != NULL;
}

/* Is the one prompt a quote mark of Discord, which quotes all behind it? */
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

	if (prompts == 0 ||
	    (!transcript && prompt_length(first, false) == 0 &&
		source_match(SOURCE_BANNER, first, strcspn(first, "\n"),
		    NULL) == 0))
		return false;
	if (!transcript && is_quote_of_code(text, first)) {
		cut(first, 4);
		return false;
	}
	for (const char *p = text; *p != '\0';) {
		size_t prompt = prompt_length(p, code);
		size_t len;

		code = prompt > 0 ||
		    (block && (*p == ' ' || *p == '\t') && !is_blank_line(p));
		p += prompt;
		len = strcspn(p, "\n");
		block = code &&
		    (expects_more(p, len) || (block && prompt == 0));
		len += p[len] == '\n';
		if (code)
			to = shape_move(to, p, len);
		p += len;
	}
	*to = '\0';
	return prompts > 1;
}

/* ---- blanks ---- */

/* Replace odd blanks before a line by blanks, and drop unseen characters. */
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
		to = shape_move(to, seen, (size_t)(scan.at - seen));
	}
	*to = '\0';
}

/* Drop odd characters at the very end. */
static void
shape_end(char *text)
{
	char *end = text;

	for (size_t step; *text != '\0'; text += step)
		if (!source_is_odd(source_decode(text, &step)))
			end = text + step;
	*end = '\0';
}

/* ---- marks before the code ---- */

/* Drop marks before the code; one on a line of its own goes with that line. */
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

/* Would Python accept the indentation, less the margins? */
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
shape_measure(const char *text, size_t least[])
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	bool first = true;

	for (int part = 0; part < PART_COUNT; part++)
		least[part] = SIZE_MAX;
	while (source_scan_next(&scan, &line)) {
		size_t blanks = strspn(line.text, " \t");
		enum part part = part_of(&line, &first);

		if ((line.in_string ? !is_blank_line(line.text) :
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
		to = shape_move(to, from, (size_t)(scan.at - from));
	}
	*to = '\0';
}

/* Cut indentation that all lines share, or all but the first. */
static void
shape_margin(char *text)
{
	size_t least[PART_COUNT];
	size_t margins[PART_COUNT] = { 0 };
	size_t first;
	size_t others;

	shape_measure(text, least);
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

/* Disarm a declared encoding, "coding: latin-1" in a comment: the text is
 * decoded already, and Python would decode it a second time.  Lines keep their
 * numbers. */
static void
shape_cookie(char *text)
{
	for (int i = 0; i < COOKIE_LINES && *text != '\0'; i++) {
		char *end = text + strcspn(text, "\n");
		size_t begin;
		size_t n;

		text += strspn(text, " \t\f");
		if (text < end && *text != '#')
			break;
		while (text < end &&
		    (n = source_match(SOURCE_CODING, text, (size_t)(end - text),
			 &begin)) > 0) {
			if (strncasecmp(text + n - 1, "utf-8", 5) != 0 &&
			    strncasecmp(text + n - 1, "utf8", 4) != 0)
				text[begin + strlen("coding")] = ' ';
			text += begin + strlen("coding");
		}
		text = end + (*end == '\n');
	}
}

bool
source_shape(char *text, bool transcript)
{
	bool prompts;

	source_line_ends(text);
	shape_escapes(text);
	shape_quotes(text);
	prompts = shape_prompts(text, transcript);
	shape_blanks(text);
	shape_end(text);
	shape_begin(text);
	shape_margin(text);
	shape_cookie(text);
	return prompts;
}
