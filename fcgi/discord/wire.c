/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/json_mend.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/protocol/frame_limits.h"
#include "action_id.h"

#define TOKEN_MAX 1024
#define PERMISSION_SEND_MESSAGES (INT64_C(1) << 11)
#define PERMISSION_SEND_IN_THREADS (INT64_C(1) << 38)
#define PERMISSION_USE_EXTERNAL_APPS (INT64_C(1) << 50)

/* jansson bounds the depth (2,048) and refuses invalid UTF-8. */
json_t *
wire_load(const char *body, size_t len, json_error_t *error)
{
	json_t *root = json_loadb(body, len, JSON_ALLOW_NUL, error);
	auto_free char *mended = NULL;

	if (root != NULL)
		return root;
	mended = json_mend(body, len);
	return json_loadb(mended, len, JSON_ALLOW_NUL, error);
}

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

#define ROWS_MAX 5
#define ROW_MAX 5

int64_t
wire_view(const json_t *message, int64_t application_id)
{
	const json_t *rows = json_object_get(message, "components");
	int64_t sender = 0;

	/* others can write what they like into theirs */
	if (!wire_id(message, "application_id", &sender) ||
	    sender != application_id)
		return 0;
	for (size_t i = 0; i < ROWS_MAX * ROW_MAX; i++) {
		const json_t *row = json_array_get(rows, i / ROW_MAX);
		const char
		    *custom_id = wire_string(json_array_get(json_object_get(row,
								"components"),
						 i % ROW_MAX),
			"custom_id");
		const char *word;
		int64_t id = 0;
		enum action action = custom_id == NULL ?
		    ACTION_COUNT :
		    action_parse(custom_id, ACTION_BUTTON, &id, &word);

		if (action != ACTION_COUNT &&
		    command_actions[action].kind == JOB_PY)
			return id;
	}
	return 0;
}
