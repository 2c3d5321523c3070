/* SPDX-License-Identifier: MIT */
#include "base/json_mend.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"

/* The code unit of \uXXXX at this place; -1: there is none. */
static int
unit_at(const char *at, const char *end)
{
	unsigned char unit[2];

	if (end - at < 6 || at[0] != '\\' || at[1] != 'u' ||
	    !text_parse_hex(at + 2, 4, unit, sizeof(unit)))
		return -1;
	return unit[0] << 8 | unit[1];
}

static bool
is_first_half(int unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool
is_second_half(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

static void
overwrite(char *at, const char *text)
{
	while (*text != '\0')
		*at++ = *text++;
}

/* Mend the text between two quotes. */
static void
mend_string(char *at, const char *end, bool is_name)
{
	while (at < end) {
		int unit = unit_at(at, end);
		bool first = is_first_half(unit);

		if (first && is_second_half(unit_at(at + 6, end))) {
			at += 12;
			continue;
		}
		/* a parser takes a NUL in a text, but not in a name */
		if (first || is_second_half(unit) || (unit == 0 && is_name))
			overwrite(at + 2, is_name ? "fffd" : "0000");
		at += unit >= 0 ? 6 : *at == '\\' ? 2 : 1;
	}
}

/* Mend a number of len bytes. */
static void
mend_number(char *at, size_t len)
{
	bool real = memchr(at, '.', len) != NULL ||
	    memchr(at, 'e', len) != NULL || memchr(at, 'E', len) != NULL;
	char *end = at;

	errno = 0;
	if (real ? isinf(strtod(at, &end)) :
		   (strtoll(at, &end, 10), errno == ERANGE)) {
		/* the shortest is "1e309" */
		if (end == at + len && len > strlen("null")) {
			memset(at, ' ', len);
			overwrite(at, "null");
		}
	}
}

/* Bytes of a number that JSON has no word for; 0: there is none here. */
static size_t
unnamed_number(const char *at)
{
	static const char *const words[] = { "NaN", "Infinity", "-Infinity" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return strlen(words[i]);
	return 0;
}

/* Mend the text at this place, which begins no string: its bytes. */
static size_t
mend_bare(char *at)
{
	size_t len = unnamed_number(at);

	if (len > 0) {
		memset(at, ' ', len);
		overwrite(at, "[]");
		return len;
	}
	len = strspn(at, "0123456789+-.eE");
	if (len == 0)
		return 1;
	mend_number(at, len);
	return len;
}

char *
json_mend(const char *json, size_t len)
{
	/* the text may hold a NUL */
	char *copy = xmalloc(len + 1);
	char *end = copy + len;
	char *at = copy;

	memcpy(copy, json, len);
	*end = '\0';
	while (at < end) {
		char *close = at + 1;

		if (*at != '"') {
			at += mend_bare(at);
			continue;
		}
		while (close < end && *close != '"')
			close += *close == '\\' && end - close > 1 ? 2 : 1;
		mend_string(at + 1, close,
		    close < end &&
			close[1 + strspn(close + 1, " \t\r\n")] == ':');
		at = close + 1;
	}
	return copy;
}
