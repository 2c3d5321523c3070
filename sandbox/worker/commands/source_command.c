/* SPDX-License-Identifier: MIT */
/* A command of ours as a text: our own messages show some. */
#include "source_parts.h"

#include <string.h>

#define STDIN_OPTION " stdin:"

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
	if (strcmp(option, " version:") == 0)
		return text[strspn(text, "0123456789.")] == '\0';
	return strcmp(text, "True") == 0 || strcmp(text, "False") == 0;
}

/* Cut off the flags and the version that the text ends with, in any order. */
static void
cut_options(char *text)
{
	static const char *const options[] = {
		" timeit:", " share:", " keep:", " version:"
	};
	size_t i = 0;

	while (i < sizeof(options) / sizeof(options[0])) {
		size_t len = strlen(options[i]);
		char *found = NULL;

		for (char *p = text; (p = strstr(p, options[i])) != NULL; p++)
			found = p;
		if (found != NULL && is_value(options[i], found + len)) {
			*found = '\0';
			i = 0;
		} else {
			i++;
		}
	}
}

/* The last byte of the string that begins here, or this quote if nothing closes
 * it. */
static char *
skip_string(char *p)
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
			p = skip_string(p);
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
	size_t n = command_length(text);
	char *at;

	if (n == 0)
		return;
	memmove(text, text + n, strlen(text + n) + 1);
	cut_options(text);
	/* it takes all that is behind it */
	at = find_stdin(text);
	if (at == NULL)
		return;
	buf_adds(input, at + sizeof(STDIN_OPTION) - 1);
	*at = '\0';
	cut_options(text);
}
