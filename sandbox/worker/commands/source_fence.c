/* SPDX-License-Identifier: MIT */
/* Discord knows back-ticks as fences; people type others, too. */
#include "source_parts.h"

#include <string.h>

#include "../render/message_cut.h"

/* Bytes of a character that looks like a back-tick and stands beside it on
 * keyboards: U+00B4, U+FF40; 0: it is none. */
static size_t
tick_length(const char *p)
{
	static const char *const ticks[] = { "\xc2\xb4", "\xef\xbd\x80" };

	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++)
		if (strncmp(p, ticks[i], strlen(ticks[i])) == 0)
			return strlen(ticks[i]);
	return 0;
}

/* Bytes of a fence of such characters; *count: how many there are. */
static size_t
false_fence(const char *p, size_t *count)
{
	size_t n = 0;
	size_t step;

	for (*count = 0; (step = tick_length(p + n)) > 0; ++*count)
		n += step;
	return *count >= SOURCE_FENCE ? n : 0;
}

/* Is there nothing but blanks after it, in its line? */
static bool
ends_line(const char *p)
{
	p += strspn(p, " \t\r");
	return *p == '\n' || *p == '\0';
}

void
source_mend_fences(char *text)
{
	const char *p = text + strspn(text, SOURCE_BLANKS);
	size_t count;
	char *to = text;
	bool begins = true; /* nothing but blanks before, in this line */

	if (false_fence(p, &count) == 0)
		return;
	for (p = text; *p != '\0';) {
		size_t n = false_fence(p, &count);

		if (n > 0 && (begins || ends_line(p + n))) {
			memset(to, '`', count);
			to += count;
			p += n;
			begins = false;
			continue;
		}
		begins = *p == '\n' || (begins && strchr(" \t", *p) != NULL);
		*to++ = *p++;
	}
	*to = '\0';
}

void
source_join_ticks(char *text)
{
	static const char apart[] = "`" MESSAGE_APART "`";
	const char *p = text;
	const char *found;
	char *to = text;

	while ((found = strstr(p, apart)) != NULL) {
		to = source_keep(to, p, (size_t)(found + 1 - p));
		p = found + sizeof(apart) - 2;
	}
	memmove(to, p, strlen(p) + 1);
}
