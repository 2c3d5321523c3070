/* SPDX-License-Identifier: MIT */
#include "action_id.h"

#include <string.h>

#include "../../sandbox/base/text.h"

enum action
action_parse(const char *custom_id, enum action_type type, int64_t *view_id)
{
	const char *colon = strchr(custom_id, ':');
	size_t len = colon == NULL ? 0 : (size_t)(colon - custom_id);
	int i = 0;

	if (len == 0 || !text_parse_int(colon + 1, 1, INT64_MAX, view_id))
		return ACTION_COUNT;
	while (i < ACTION_COUNT &&
	    (command_actions[i].type != type ||
		strlen(command_actions[i].name) != len ||
		memcmp(command_actions[i].name, custom_id, len) != 0))
		i++;
	return (enum action)i;
}
