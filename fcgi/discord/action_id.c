/* SPDX-License-Identifier: MIT */
#include "action_id.h"

#include <string.h>

#include "../../sandbox/base/text.h"

#define DIGITS_MAX 19

/* The number behind the colon, and where it ends. */
static bool
read_number(const char *colon, int64_t *number, const char **end)
{
	char digits[DIGITS_MAX + 1];
	size_t len = strcspn(colon + 1, ":");

	if (len > DIGITS_MAX)
		return false;
	memcpy(digits, colon + 1, len);
	digits[len] = '\0';
	*end = colon + 1 + len;
	return text_parse_int(digits, 1, INT64_MAX, number);
}

enum action
action_parse(const char *custom_id, enum action_type type, int64_t *view_id,
    const char **word)
{
	size_t len = strcspn(custom_id, ":");
	const char *end;
	int i = 0;

	if (custom_id[len] == '\0' ||
	    !read_number(custom_id + len, view_id, &end))
		return ACTION_COUNT;
	*word = *end == ':' ? end + 1 : NULL;
	while (i < ACTION_COUNT &&
	    (command_actions[i].type != type ||
		strlen(command_actions[i].name) != len ||
		memcmp(command_actions[i].name, custom_id, len) != 0))
		i++;
	return (*word != NULL) == (i == ACTION_PY_TRIED) ? (enum action)i :
							   ACTION_COUNT;
}
