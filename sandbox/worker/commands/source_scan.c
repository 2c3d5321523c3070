/* SPDX-License-Identifier: MIT */
#include "worker/commands/source_parts.h"

#include <string.h>

#include "base/utf8.h"

#define WORD_MOST 8

/* A name that ends here, before a quote for example. */
struct word {
	char text[WORD_MOST];
	size_t len; /* more than WORD_MOST: it is no prefix */
};

bool
source_is_odd(uint32_t code)
{
	return code > 0x7f &&
	    (utf8_is_blank(code) || code == 0xad || code == 0x61c ||
		(code >= 0x200b && code <= 0x200f) ||
		(code >= 0x2028 && code <= 0x202e) ||
		(code >= 0x2060 && code <= 0x206f) || code == 0xfeff);
}

uint32_t
source_decode(const char *s, size_t *step)
{
	*step = utf8_step(s, strnlen(s, 4));
	if (*step > 0)
		return utf8_decode(s, *step);
	*step = 1;
	return 0xfffd;
}

size_t
source_blanks(const char *text)
{
	size_t n = 0;
	size_t step = 1;

	while (text[n] == ' ' || text[n] == '\t' || text[n] == '\f' ||
	    ((unsigned char)text[n] > 0x7f &&
		source_is_odd(source_decode(text + n, &step)))) {
		n += step;
		step = 1;
	}
	return n;
}

/* ---- strings ---- */

/* Is the word a prefix of strings, or a keyword that may stand right before
 * one? */
static bool
may_precede(const struct word *word)
{
	return word->len == 0 ||
	    (word->len <= WORD_MOST &&
		source_is_one_of("r b u f t br rb fr rf tr rt in is if or and "
				 "not else elif while return yield assert "
				 "await raise case match except print del from "
				 "import lambda",
		    word->text, word->len));
}

bool
source_is_triple(const char *p, char quote)
{
	return p[0] == quote && p[1] == quote && p[2] == quote;
}

const char *
source_string_end(const char *p, char quote, bool triple, bool in_line)
{
	for (; *p != '\0' && (*p != '\n' || (triple && !in_line)); p++) {
		if (*p == '\\' && p[1] != '\0' && (!in_line || p[1] != '\n'))
			p++;
		else if (triple ? source_is_triple(p, quote) : *p == quote)
			break;
	}
	return p;
}

/* Does a string begin at this quote?  A quote that is not closed begins
 * none. */
static bool
opens_string(struct source_scan *scan, const char *p, const struct word *word)
{
	int which = *p == '"';
	const char *end;

	if (!may_precede(word))
		return false;
	scan->triple = source_is_triple(p, *p) && !scan->never[which];
	if (scan->triple) {
		end = source_string_end(p + 3, *p, true, false);
		scan->triple = *end == *p;
		scan->never[which] = !scan->triple;
	}
	if (!scan->triple) {
		if (scan->unclosed[which] != NULL && p < scan->unclosed[which])
			return false;
		end = source_string_end(p + 1, *p, false, false);
		if (*end != *p) {
			scan->unclosed[which] = end;
			return false;
		}
	}
	scan->quote = *p;
	return true;
}

/* Skip a string to its end or to that of the line. */
static const char *
scan_string(struct source_scan *scan, const char *p)
{
	p = source_string_end(p, scan->quote, scan->triple, true);
	if (*p == scan->quote) {
		scan->quote = 0;
		return p + (scan->triple ? 3 : 1);
	}
	/* a short string goes on in the next line only after a backslash */
	if (!scan->triple && *p == '\n' && p[-1] != '\\')
		scan->quote = 0;
	return p;
}

/* ---- lines ---- */

/* Does a notebook's command begin here?  Then the rest of the line is not
 * Python. */
static bool
is_magic(const char *p)
{
	return *p == '!' ||
	    (*p == '%' && p[1] != '\0' &&
		strchr(SOURCE_NAME_CHARS "%", p[1]) != NULL);
}

static const char *
skip_line(const char *p)
{
	return p + strcspn(p, "\n");
}

static const char *
note_wide(struct source_line *line, const char *p, struct word *word)
{
	size_t step;
	uint32_t code = source_decode(p, &step);

	if (!source_is_odd(code)) {
		word->len = WORD_MOST + 1;
		if (code >= 0x2018 && code <= 0x201f)
			line->curly = true;
	} else {
		word->len = 0;
		if (line->odd == 0)
			line->odd = code;
	}
	return p + step;
}

/* A backslash outside a string, and the quote mark that it hides. */
static const char *
note_escape(struct source_line *line, const char *p, struct word *word)
{
	if (p[1] == 'n' && line->escape == NULL)
		line->escape = p;
	word->len = 0;
	return p + 1 + (p[1] == '\'' || p[1] == '"');
}

static void
note_letter(struct word *word, char c)
{
	if (strchr(SOURCE_NAME_CHARS, c) == NULL) {
		word->len = 0;
		return;
	}
	if (word->len < WORD_MOST)
		word->text[word->len] = c;
	if (word->len <= WORD_MOST)
		word->len++;
}

static void
note_bracket(struct source_scan *scan, char c)
{
	if (strchr("([{", c) != NULL)
		scan->depth++;
	else if (scan->depth > 0 && strchr(")]}", c) != NULL)
		scan->depth--;
}

/* Read one token, or a part of one; *last: the last character that counts. */
static const char *
scan_token(struct source_scan *scan, struct source_line *line, const char *p,
    struct word *word, char *last)
{
	if (*p == '#')
		return skip_line(p);
	if (*p == '`') {
		size_t run = strspn(p, "`");

		line->ticks = run > line->ticks ? run : line->ticks;
		word->len = 0;
		*last = '`';
		return p + run;
	}
	if ((*p == '"' || *p == '\'') && opens_string(scan, p, word)) {
		word->len = 0;
		*last = *p;
		return scan_string(scan, p + (scan->triple ? 3 : 1));
	}
	if (strchr(" \t\f", *p) == NULL)
		*last = *p;
	if (*p == '\\' && p[1] != '\0' && p[1] != '\n')
		return note_escape(line, p, word);
	if ((unsigned char)*p > 0x7f)
		return note_wide(line, p, word);
	note_letter(word, *p);
	note_bracket(scan, *p);
	return p + 1;
}

bool
source_scan_next(struct source_scan *scan, struct source_line *line)
{
	const char *p = scan->at;
	struct word word = { .len = 0 };
	char last = '\0';

	if (*p == '\0')
		return false;
	*line = (struct source_line){
		.text = p,
		.blanks = source_blanks(p),
		.in_string = scan->quote != 0,
		.inner = scan->depth > 0 || scan->joined,
	};
	if (line->in_string) {
		last = scan->quote;
		p = scan_string(scan, p);
	} else if (!line->inner && is_magic(p + line->blanks)) {
		last = '!';
		p = skip_line(p);
	}
	while (*p != '\0' && *p != '\n' &&
	    (!scan->stops || line->escape == NULL))
		p = scan->quote != 0 ? scan_string(scan, p) :
				       scan_token(scan, line, p, &word, &last);
	scan->joined = scan->quote == 0 && last == '\\';
	line->len = (size_t)(p - line->text);
	line->code = last != '\0';
	line->opens = last == ':' && scan->depth == 0 && scan->quote == 0;
	scan->at = p + (*p == '\n');
	return true;
}

/* ---- back-ticks ---- */

size_t
source_ticks(const char *text)
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	size_t most = 0;

	while (source_scan_next(&scan, &line))
		if (line.ticks > most)
			most = line.ticks;
	return most;
}

/* Comments hide no fence: a block may end in one. */
static const char *
find_fence(const char *p, size_t ticks)
{
	struct source_scan scan = { .at = p };
	struct word word = { .len = 0 };
	struct source_line line = { .text = p };
	char last;

	while (*p != '\0') {
		size_t run = strspn(p, "`");

		if (scan.quote != 0) {
			p = scan_string(&scan, p);
			p += *p == '\n' ? 1 : 0;
			continue;
		}
		if (run >= ticks)
			return p;
		if (run > 0 || *p == '#' || *p == '\n') {
			word.len = 0;
			p += run > 0 ? run : 1;
			continue;
		}
		p = scan_token(&scan, &line, p, &word, &last);
	}
	return NULL;
}

const char *
source_find_fence(const char *text, size_t ticks)
{
	const char *found = find_fence(text, ticks);

	for (const char *p = text; found == NULL; p += strspn(p, "`")) {
		p = strchr(p, '`');
		if (p == NULL)
			break;
		if (strspn(p, "`") >= ticks)
			found = p;
	}
	return found;
}
