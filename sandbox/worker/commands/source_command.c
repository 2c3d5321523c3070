/* SPDX-License-Identifier: MIT */
/* A command of ours as a text: our own messages show some. */
#include "source_parts.h"

#include <string.h>

#define OPTIONS 5

/* Bytes of "/il py code:". */
static size_t
command_length(const char *text)
{
	size_t n = strncmp(text, "/il ", 4) == 0 ? 4 : 1;

	if (*text != '/' || strncmp(text + n, "py ", 3) != 0)
		return 0;
	n += 3;
	n += strspn(text + n, " ");
	if (strncmp(text + n, "code:", 5) == 0)
		n += 5;
	return n + strspn(text + n, " ");
}

/* Is all of the text the value of that option? */
static bool
is_value(const char *option, const char *text)
{
	if (strcmp(option, "stdin:") == 0)
		return true;
	if (strcmp(option, "version:") == 0)
		return text[strspn(text, "0123456789.")] == '\0';
	return strcmp(text, "True") == 0 || strcmp(text, "False") == 0;
}

/* The option that the text ends with; NULL: none.  *value: what it says. */
static char *
find_option(char *text, const char *option, char **value)
{
	char *found = NULL;

	for (char *p = strstr(text, option); p != NULL;
	     p = strstr(p + 1, option))
		if (p > text && p[-1] == ' ')
			found = p;
	if (found == NULL || !is_value(option, found + strlen(option)))
		return NULL;
	*value = found + strlen(option);
	return found - 1;
}

void
source_take_command(char *text, struct buf *input)
{
	static const char *const options[] = {
		"timeit:", "share:", "keep:", "version:", "stdin:"
	};
	size_t n = command_length(text);
	char *value;

	if (n == 0)
		return;
	memmove(text, text + n, strlen(text + n) + 1);
	/* they stand in any order, and stdin takes all that is behind it */
	for (size_t i = 0; i < 2 * OPTIONS; i++) {
		const char *option = options[i % OPTIONS];
		char *at = find_option(text, option, &value);

		if (at == NULL)
			continue;
		if (strcmp(option, "stdin:") == 0)
			buf_adds(input, value);
		*at = '\0';
	}
}
