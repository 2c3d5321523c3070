/* SPDX-License-Identifier: MIT */
/*
 * Does nginx take as many connections as its limits assume?  Debian's own
 * configuration has 768, which the bodies of one stranger fill.
 */
#include "nginx_room.h"

#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/text.h"

#define BLANK " \t\r\n"
#define DIGITS "0123456789"
/* nginx's own, where nothing is said. */
#define CONNECTIONS_DEFAULT 512

/* "NAME NUMBER;" at the beginning of a text. */
static bool
is_setting(const char *text, const char *name, int64_t *value)
{
	size_t len = strlen(name);
	char digits[16] = "";
	size_t count;

	if (strncmp(text, name, len) != 0 || strchr(BLANK, text[len]) == NULL)
		return false;
	text += len + strspn(text + len, BLANK);
	count = strspn(text, DIGITS);
	if (count >= sizeof(digits) ||
	    text[count + strspn(text + count, BLANK)] != ';')
		return false;
	memcpy(digits, text, count);
	return text_parse_int(digits, 0, INT64_MAX, value);
}

/* The first that stands outside of comments: nginx's own file comes first, and
 * none may be there twice. */
static int64_t
setting(const char *text, const char *name, int64_t otherwise)
{
	int64_t value;

	while (*text != '\0') {
		text += strspn(text, BLANK "{};");
		if (*text == '#')
			text += strcspn(text, "\n");
		else if (is_setting(text, name, &value))
			return value;
		else
			text += strcspn(text, "\n{};");
	}
	return otherwise;
}

void
nginx_room_read(struct nginx_room *room, const char *dump, const char *lib_dir)
{
	auto_free char *ours = xprintf("\n# configuration file %s/nginx/"
				       "http.conf:\n",
	    lib_dir);

	*room = (struct nginx_room){
		.connections = setting(dump, "worker_connections",
		    CONNECTIONS_DEFAULT),
		.files = setting(dump, "worker_rlimit_nofile", 0),
		.ours = strstr(dump, ours) != NULL,
	};
}

/* Each connection is a file, and there are a few more. */
bool
nginx_room_suffices(const struct nginx_room *room)
{
	return room->connections >= NGINX_CONNECTIONS_MIN &&
	    room->files > room->connections;
}
