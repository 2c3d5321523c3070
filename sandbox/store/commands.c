/* SPDX-License-Identifier: MIT */
#include "store/commands.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/basics.h"
#include "store/db.h"

/* Short forms of the options in commands.def. */
#define NO_OPTIONS \
	{ \
		0 \
	}
#define OPTION(name, type, field, most, bytes, required, description, suggest) \
	{ \
		name, OPTION_##type, offsetof(struct job, field), most, bytes, \
		    required, description, suggest \
	}
#define PATHS "directory file"
#define FILES "file"
#define FOLDERS "directory"
#define PATH(name, suggest, required, description) \
	OPTION(name, STRING, path, COMMAND_PATH_MAX, COMMAND_PATH_MAX, \
	    required, description, suggest)
#define TEXT(name, ...) OPTION(name, STRING, text, __VA_ARGS__, NULL)
#define INPUT(name, ...) OPTION(name, STRING, input, __VA_ARGS__, NULL)
#define PACKAGE(name, description) \
	OPTION(name, STRING, text, COMMAND_PACKAGE_MAX, COMMAND_PACKAGE_MAX, \
	    true, description, "package")
#define VERSION(name, description) \
	OPTION(name, STRING, version, COMMAND_VERSION_MAX, \
	    COMMAND_VERSION_MAX, false, description, NULL)
#define PAGE(name, description) \
	OPTION(name, INTEGER, page, 0, 0, false, description, NULL)
#define FLAG(name, field, description) \
	OPTION(name, BOOLEAN, field, 0, 0, false, description, NULL)
#define SHARE(name, description) FLAG(name, share, description)
#define RECURSIVE(name, description) FLAG(name, recursive, description)
#define TIMEIT(name, description) FLAG(name, timeit, description)
#define KEEP(name, description) FLAG(name, keep, description)
#define FILE(name, required, description) \
	OPTION(name, ATTACHMENT, attachment_url, 0, 0, required, description, \
	    NULL)
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
#define ACTION(action, name, type, kind, job, answer, function, step) \
	[ACTION_##action] = { name, ACTION_##type, JOB_##kind, JOB_##job, \
		ACTION_TO_##answer, step },
#include "store/commands.def"
};

char *
action_id(enum action action, int64_t id)
{
	return xprintf("%s:%" PRId64, command_actions[action].name, id);
}

/* Is it one of /il's? */
static bool
is_under_il(enum job_kind kind)
{
	return commands[kind].place == COMMAND_UNDER_IL ||
	    commands[kind].place == COMMAND_BOTH;
}

bool
command_spell(enum job_kind kind, char spelt[COMMAND_SPELT_MAX])
{
	bool under = is_under_il(kind);
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

/* ---- ids of commands ---- */

/* The name that Discord registers for it; "": it has none of its own. */
static const char *
registered_as(enum job_kind kind)
{
	if (is_under_il(kind))
		return "il";
	return commands[kind].place == COMMAND_ROOT ? commands[kind].name : "";
}

int
command_ids_load(struct db *db, int64_t application_id, struct command_ids *ids,
    struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_COMMAND_ID_LOAD,
	    DB_VALUES(BIND(":application_id", application_id)));
	struct command_ids found = { 0 };
	int row;

	while ((row = db_step(db, s, err)) == 1)
		for (int i = 0; i < JOB_UNKNOWN; i++)
			if (strcmp(registered_as((enum job_kind)i),
				db_column_text(s, 0)) == 0)
				found.of[i] = db_column_int(s, 1);
	if (row == 0)
		*ids = found;
	return row;
}

int
command_ids_keep(struct db *db, int64_t application_id, const char *answer,
    struct err *err)
{
	int result = db_begin(db, err);

	if (result != 0)
		return -1;
	result = db_change_any(db, STATEMENT_COMMAND_ID_FORGET,
	    DB_VALUES(BIND(":application_id", application_id)), err);
	if (result == 0)
		result = db_change_any(db, STATEMENT_COMMAND_ID_KEEP,
		    DB_VALUES(BIND(":application_id", application_id),
			BIND(":answer", answer)),
		    err);
	return db_end(db, result, err);
}

/* The command that a text spells, as "il create", "il session start" or
 * "health". */
static enum job_kind
find_spelt(const char *text, size_t len)
{
	char spelt[COMMAND_SPELT_MAX];

	for (int i = 0; i < JOB_UNKNOWN; i++)
		if (command_spell((enum job_kind)i, spelt) &&
		    strlen(spelt) == len && memcmp(spelt, text, len) == 0)
			return (enum job_kind)i;
	return JOB_UNKNOWN;
}

void
command_add_text(struct buf *out, const struct command_ids *ids,
    const char *text)
{
	const char *tick;
	const char *end;

	while (ids != NULL && (tick = strstr(text, "`/")) != NULL &&
	    (end = strchr(tick + 1, '`')) != NULL) {
		size_t len = (size_t)(end - tick) - 1;
		enum job_kind kind = find_spelt(tick + 2, len - 1);

		buf_add(out, text, (size_t)(tick - text));
		if (kind != JOB_UNKNOWN && ids->of[kind] != 0)
			buf_addf(out, "<%.*s:%" PRId64 ">", (int)len, tick + 1,
			    ids->of[kind]);
		else
			buf_add(out, tick, (size_t)(end + 1 - tick));
		text = end + 1;
	}
	buf_adds(out, text);
}
