/* SPDX-License-Identifier: MIT */
#include "store/commands.h"

#include <stdio.h>
#include <string.h>

/* What the options of commands.def are short for. */
#define NO_OPTIONS \
	{ \
		0 \
	}
#define STRING(name, target, suggest, most, bytes, required, description) \
	{ \
		name, OPTION_STRING, target, most, bytes, required, \
		    description, SUGGEST_##suggest \
	}
#define PATH(name, suggest, required, description) \
	STRING(name, OPTION_TO_PATH, suggest, COMMAND_PATH_MAX, \
	    COMMAND_PATH_MAX, required, description)
#define TEXT(name, ...) STRING(name, OPTION_TO_TEXT, NOTHING, __VA_ARGS__)
#define INPUT(name, ...) STRING(name, OPTION_TO_INPUT, NOTHING, __VA_ARGS__)
#define PACKAGE(name, description) \
	STRING(name, OPTION_TO_TEXT, PACKAGES, COMMAND_PACKAGE_MAX, \
	    COMMAND_PACKAGE_MAX, true, description)
#define OTHER(name, type, target, required, description) \
	{ \
		name, type, target, 0, 0, required, description, \
		    SUGGEST_NOTHING \
	}
#define PAGE(name, description) \
	OTHER(name, OPTION_INTEGER, OPTION_TO_PAGE, false, description)
#define SHARE(name, description) \
	OTHER(name, OPTION_BOOLEAN, OPTION_TO_SHARE, false, description)
#define RECURSIVE(name, description) \
	OTHER(name, OPTION_BOOLEAN, OPTION_TO_RECURSIVE, false, description)
#define TIMEIT(name, description) \
	OTHER(name, OPTION_BOOLEAN, OPTION_TO_TIMEIT, false, description)
#define KEEP(name, description) \
	OTHER(name, OPTION_BOOLEAN, OPTION_TO_KEEP, false, description)
#define VERSION(name, description) \
	STRING(name, OPTION_TO_VERSION, NOTHING, COMMAND_VERSION_MAX, \
	    COMMAND_VERSION_MAX, false, description)
#define FILE(name, required, description) \
	OTHER(name, OPTION_ATTACHMENT, OPTION_TO_ATTACHMENT, required, \
	    description)
#define CODE_MAX COMMAND_CODE_MAX
#define CONTENT_MAX COMMAND_CONTENT_MAX

const struct command commands[JOB_UNKNOWN + 1] = {
#define COMMAND(kind, name, function, place, needs, description, ...) \
	[JOB_##kind] = { name, COMMAND_##place, COMMAND_NEEDS_##needs, \
		description, { __VA_ARGS__ } },
#include "store/commands.def"
	[JOB_UNKNOWN] = { .name = "unknown" },
};

const struct command_group command_groups[] = {
#define GROUP(name, description) { name, description },
#include "store/commands.def"
	{ NULL, NULL },
};

const struct command_action command_actions[ACTION_COUNT] = {
#define ACTION(action, name, type, kind, function, step) \
	[ACTION_##action] = { name, ACTION_##type, JOB_##kind, step },
#include "store/commands.def"
};

bool
command_is_under_il(enum job_kind kind)
{
	return commands[kind].place == COMMAND_UNDER_IL ||
	    commands[kind].place == COMMAND_BOTH;
}

bool
command_spell(enum job_kind kind, char spelt[COMMAND_SPELT_MAX])
{
	bool under = command_is_under_il(kind);
	char *slash;

	if (!under && commands[kind].place != COMMAND_ROOT)
		return false;
	(void)snprintf(spelt, COMMAND_SPELT_MAX, "%s%s", under ? "il " : "",
	    commands[kind].name);
	slash = strchr(spelt, '/');
	if (slash != NULL)
		*slash = ' ';
	return true;
}

enum job_kind
job_kind_find(const char *name)
{
	int kind = 0;

	while (kind < JOB_UNKNOWN && strcmp(commands[kind].name, name) != 0)
		kind++;
	return (enum job_kind)kind;
}
