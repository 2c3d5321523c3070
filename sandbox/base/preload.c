/* SPDX-License-Identifier: MIT */
#include "base/preload.h"

#include <string.h>

static const char auto_list[PRELOAD_NAMES_MAX] =
    "numpy,pandas,matplotlib.pyplot,PIL.Image,scipy.stats,sympy,sklearn,"
    "seaborn,networkx,requests";

bool
preload_is_auto(const char *setting)
{
	return strcmp(setting, "auto") == 0;
}

const char *
preload_list(const char *setting)
{
	if (strcmp(setting, "none") == 0)
		return "";
	return preload_is_auto(setting) ? auto_list : setting;
}

const char *
preload_next(const char **list, size_t *len)
{
	const char *name = *list + strspn(*list, ",");

	*len = strcspn(name, ",");
	*list = name + *len;
	return *len > 0 ? name : NULL;
}

uint32_t
preload_bit(size_t index)
{
	return UINT32_C(1) << (index < PRELOAD_BITS ? index : PRELOAD_BITS - 1);
}

uint32_t
preload_without(uint32_t mask, uint32_t imported)
{
	uint32_t left = mask;

	for (; mask != 0; mask &= mask - 1, imported >>= 1)
		if ((imported & 1) != 0)
			left &= ~(mask & -mask);
	return left;
}

void
preload_auto_names(uint32_t mask, char names[PRELOAD_NAMES_MAX])
{
	const char *list = auto_list;
	const char *name;
	char *end = names;
	size_t len;

	for (size_t i = 0; (name = preload_next(&list, &len)) != NULL; i++) {
		if ((mask & preload_bit(i)) == 0)
			continue;
		if (end != names)
			*end++ = ',';
		memcpy(end, name, len);
		end += len;
	}
	*end = '\0';
}
