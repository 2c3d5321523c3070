/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <string.h>

#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/frame_limits.h"

#define TOKEN_MAX 1024
#define PERMISSION_SEND_MESSAGES (INT64_C(1) << 11)
#define PERMISSION_SEND_IN_THREADS (INT64_C(1) << 38)
#define PERMISSION_USE_EXTERNAL_APPS (INT64_C(1) << 50)

const char *
wire_string(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value) ||
	    json_string_length(value) != strlen(json_string_value(value)))
		return NULL;
	return json_string_value(value);
}

bool
wire_int(const json_t *object, const char *key, int64_t *number)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		return false;
	*number = json_integer_value(value);
	return true;
}

bool
wire_id(const json_t *object, const char *key, int64_t *id)
{
	const char *text = wire_string(object, key);

	return text != NULL && text_parse_snowflake(text, strlen(text), id);
}

bool
wire_is_token(const char *token)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._~=+-";
	size_t len = token == NULL ? 0 : strlen(token);

	return len > 0 && len <= TOKEN_MAX && strspn(token, allowed) == len &&
	    token[0] != '.';
}

/* Discord tells it as the title where its own name for the file is another one,
 * which keeps the ending.  A title that cannot be a file's name is as good as
 * missing. */
const char *
wire_file_name(const json_t *attachment, const char **ending)
{
	const char *name = wire_string(attachment, "filename");
	const char *title = wire_string(attachment, "title");
	const char *dot = name != NULL ? strrchr(name, '.') : NULL;
	size_t len = title != NULL ? strlen(title) : 0;

	*ending = "";
	if (name == NULL || len == 0 || strchr(title, '/') != NULL)
		return name;
	for (const char *c = title; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == '\x7f')
			return name;
	if (dot != NULL && strchr(title, '.') == NULL)
		*ending = dot;
	if (len + strlen(*ending) <= LIMIT_NAME)
		return title;
	*ending = "";
	return name;
}

int64_t
wire_permissions(const json_t *object, const char *key)
{
	const char *text = wire_string(object, key);
	int64_t bits = -1;

	if (text != NULL)
		(void)text_parse_int(text, 0, INT64_MAX, &bits);
	return bits;
}

/* In a server somebody may have forbidden it: to us, or to apps that people
 * bring along themselves. */
bool
wire_may_post(const json_t *root, int64_t bits)
{
	enum { THREAD_FIRST = 10, THREAD_LAST = 12 };
	const json_t *owners = json_object_get(root,
	    "authorizing_integration_owners");
	const json_t *member = json_object_get(root, "member");
	int64_t channel = 0;
	bool thread;

	if (!json_is_object(member))
		return true;
	(void)wire_int(json_object_get(root, "channel"), "type", &channel);
	thread = channel >= THREAD_FIRST && channel <= THREAD_LAST;
	if (json_is_object(owners) && json_object_get(owners, "0") == NULL)
		return (wire_permissions(member, "permissions") &
			   PERMISSION_USE_EXTERNAL_APPS) != 0;
	return (bits &
		   (thread ? PERMISSION_SEND_IN_THREADS :
			     PERMISSION_SEND_MESSAGES)) != 0;
}
