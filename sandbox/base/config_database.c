/* SPDX-License-Identifier: MIT */
#include "config_database.h"

#include <string.h>

#include "buf.h"

#define LONG "postgresql://"
#define SHORT "postgres://"

static size_t
scheme_length(const char *address)
{
	if (strncmp(address, LONG, strlen(LONG)) == 0)
		return strlen(LONG);
	return strncmp(address, SHORT, strlen(SHORT)) == 0 ? strlen(SHORT) : 0;
}

bool
config_database_is_server(const char *address)
{
	return scheme_length(address) != 0;
}

/* As libpq reads it, which ends a name or a password at no question mark. */
const char *
config_database_check(const char *address)
{
	const char *rest = address + scheme_length(address);
	const char *user_end = memchr(rest, '@', strcspn(rest, "/"));
	const char *options = strchr(rest, '?');

	for (const char *c = address; *c != '\0'; c++)
		if (*c < '!' || *c > '~')
			return "blanks, control characters or non-ASCII in it";
	if ((user_end != NULL &&
		memchr(rest, ':', (size_t)(user_end - rest)) != NULL) ||
	    (options != NULL && strstr(options, "password=") != NULL))
		return "a password is not for this key: put the address into "
		       "a file, and its path into IL_DATABASE_FILE";
	return NULL;
}

char *
config_database_shown(const char *address)
{
	const char *rest = address + scheme_length(address);
	const char *user_end = memchr(rest, '@', strcspn(rest, "/"));

	if (rest == address)
		return xstrdup(address);
	if (user_end != NULL)
		rest = user_end + 1;
	return xprintf(LONG "%.*s", (int)strcspn(rest, "?"), rest);
}
