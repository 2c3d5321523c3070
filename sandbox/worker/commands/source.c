/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "../../base/buf.h"
#include "../../base/cleanup.h"

#define FENCE "```"
#define BLANKS " \t\n\r"
#define TAG_MOST 32
#define TAG_CHARS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-_.#"

/* Here a text is a copy that is cut in place: a pointer into it is the rest. */

static char *
trim(char *s)
{
	size_t len = strlen(s);

	while (len > 0 && strchr(BLANKS, s[len - 1]) != NULL)
		s[--len] = '\0';
	return s + strspn(s, BLANKS);
}

static bool
is_fence(const char *s)
{
	return strncmp(s, FENCE, strlen(FENCE)) == 0;
}

/* Length of the tag at the start and of the line end after it; 0: none.  A tag
 * with nothing after it is code: "```x```" shows x. */
static size_t
tag_line(const char *s)
{
	size_t n = strspn(s, TAG_CHARS);

	if (n > TAG_MOST)
		return 0;
	n += strspn(s + n, " \t\r");
	return s[n] == '\n' && s[n + strspn(s + n, BLANKS)] != '\0' ? n + 1 : 0;
}

/* Clients that cannot send several lines make one line of a block, and the tag
 * becomes its first word. */
static size_t
tag_word(const char *s)
{
	static const char *const tags[] = { "python3", "python", "py" };

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		size_t n = strlen(tags[i]);

		if (strncmp(s, tags[i], n) == 0 &&
		    (s[n] == ' ' || s[n] == '\t') && strchr(s, '\n') == NULL)
			return n + 1;
	}
	return 0;
}

/* s begins with a fence: what is between it and the last one, without a tag. */
static char *
in_fence(char *s)
{
	char *last = NULL;
	size_t n;

	s += strlen(FENCE);
	for (char *p = strstr(s, FENCE); p != NULL; p = strstr(p + 1, FENCE))
		last = p;
	if (last != NULL)
		*last = '\0';
	n = tag_line(s);
	return s + (n > 0 ? n : tag_word(s));
}

/* s begins with back-ticks: what is between them and as many at the end. */
static char *
in_ticks(char *s)
{
	size_t ticks = strspn(s, "`");
	size_t len;

	s += ticks;
	len = strlen(s);
	while (ticks-- > 0 && len > 0 && s[len - 1] == '`')
		s[--len] = '\0';
	return trim(s);
}

static char *
with_line_ends(const char *s, size_t *len)
{
	struct buf out = BUF_INIT(strlen(s) + 1);

	for (; *s != '\0'; s++) {
		if (*s == '\r' && s[1] == '\n')
			continue;
		buf_addc(&out, *s == '\r' ? '\n' : *s);
	}
	return buf_steal(&out, len);
}

char *
source_code(const char *text, size_t *len)
{
	auto_free char *copy = xstrdup(text);
	char *s = trim(copy);

	/* no Python begins with a back-tick: it must be markup */
	if (is_fence(s))
		return with_line_ends(in_fence(s), len);
	return with_line_ends(*s == '`' ? in_ticks(s) : text, len);
}

/* ---- what may be wrong ---- */

/* Is the word one of them?  In upper or lower case, as people type. */
static bool
is_one_of(const char *word, size_t len, const char *const *list)
{
	for (; *list != NULL; list++)
		if (len == strlen(*list) && strncasecmp(word, *list, len) == 0)
			return true;
	return false;
}

static struct slip
slip_word(enum slip_kind kind, const char *word, size_t len)
{
	struct slip slip = { .kind = kind };

	if (len >= sizeof(slip.word))
		len = sizeof(slip.word) - 1;
	memcpy(slip.word, word, len);
	return slip;
}

/* Before code, not as a variable in it. */
static bool
begins_with_tag(const char *code, size_t *len)
{
	static const char *const tags[] = { "python", "python3", "py", "py3",
		NULL };
	const char *rest;

	*len = strspn(code, TAG_CHARS);
	rest = code + *len + strspn(code + *len, " \t");
	return is_one_of(code, *len, tags) &&
	    strchr(BLANKS, code[*len]) != NULL && *rest != '\0' &&
	    strchr("=,;:+-*/.([", *rest) == NULL;
}

/* Python has no use for one outside of a text. */
static bool
has_left_tick(const char *code)
{
	size_t len = strlen(code);

	while (len > 0 && strchr(BLANKS, code[len - 1]) != NULL)
		len--;
	return *code == '`' || (len > 0 && code[len - 1] == '`') ||
	    strstr(code, "\n" FENCE) != NULL;
}

/* U+2018 to U+201F. */
static bool
has_curly_quote(const char *code)
{
	while ((code = strstr(code, "\xe2\x80")) != NULL) {
		code += 2;
		if ((unsigned char)*code >= 0x98 &&
		    (unsigned char)*code <= 0x9f)
			return true;
	}
	return false;
}

struct slip
source_language(const char *text)
{
	/* tags that say nothing of another language */
	static const char *const plain[] = { "python", "python3", "py", "py3",
		"pyw", "pyi", "ipython", "pycon", "text", "txt", "plain",
		"plaintext", "code", "ansi", NULL };
	const char *tag = text + strspn(text, BLANKS);

	if (is_fence(tag) && tag_line(tag + strlen(FENCE)) > 0) {
		size_t n;

		tag += strlen(FENCE);
		n = strspn(tag, TAG_CHARS);
		if (n > 0 && !is_one_of(tag, n, plain))
			return slip_word(SLIP_LANGUAGE, tag, n);
	}
	return (struct slip){ .kind = SLIP_NONE };
}

struct slip
source_slip(const char *text)
{
	size_t len = 0;
	auto_free char *source = source_code(text, &len);
	const char *code = source + strspn(source, BLANKS);
	struct slip other;
	size_t n;

	if (begins_with_tag(code, &n))
		return slip_word(SLIP_WORD, code, n);
	if (has_left_tick(code))
		return (struct slip){ .kind = SLIP_FENCE };
	other = source_language(text);
	if (other.kind != SLIP_NONE)
		return other;
	if (has_curly_quote(code))
		return (struct slip){ .kind = SLIP_QUOTES };
	if ((*source == '\t' || strstr(source, "\n\t") != NULL) &&
	    (*source == ' ' || strstr(source, "\n ") != NULL))
		return (struct slip){ .kind = SLIP_TABS };
	return (struct slip){ .kind = SLIP_NONE };
}

char *
source_content(const char *text, size_t *len)
{
	auto_free char *copy = xstrdup(text);
	char *s = trim(copy);
	size_t trimmed = strlen(s);

	if (trimmed >= 2 * strlen(FENCE) && is_fence(s) &&
	    is_fence(s + trimmed - strlen(FENCE)))
		return with_line_ends(in_fence(s), len);
	*len = strlen(text);
	return xstrdup(text);
}
