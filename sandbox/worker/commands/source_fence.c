/* SPDX-License-Identifier: MIT */
/* Discord knows back-ticks as fences; people type others, too. */
#include "source_parts.h"

#include <string.h>

#include "../render/message_cut.h"

/* Bytes of a fence of characters that look like back-ticks and stand beside
 * them on keyboards, U+00B4 and U+FF40; *count: how many there are. */
static size_t
false_fence(const char *p, size_t *count)
{
	static const char acute[] = "\xc2\xb4";
	static const char wide[] = "\xef\xbd\x80";
	const char *begin = p;

	for (*count = 0;; ++*count)
		if (strncmp(p, acute, strlen(acute)) == 0)
			p += strlen(acute);
		else if (strncmp(p, wide, strlen(wide)) == 0)
			p += strlen(wide);
		else
			break;
	return *count >= SOURCE_FENCE ? (size_t)(p - begin) : 0;
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
