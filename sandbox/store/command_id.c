/* SPDX-License-Identifier: MIT */
#include "store/command_id.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "store/db.h"

#define GROUP "il"

/* The name that Discord registers for it; "": it has none of its own. */
static const char *
registered_as(enum job_kind kind)
{
	if (command_is_under_il(kind))
		return GROUP;
	return commands[kind].place == COMMAND_ROOT ? commands[kind].name : "";
}

int
command_ids_load(struct db *db, int64_t application_id, struct command_ids *ids,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_COMMAND_ID_LOAD);
	struct command_ids found = { 0 };
	int row;

	db_bind_int(s, ":application_id", application_id);
	while ((row = db_step(db, s, err)) == 1)
		for (int i = 0; i < JOB_UNKNOWN; i++)
			if (strcmp(registered_as((enum job_kind)i),
				db_column_text(s, 0)) == 0)
				found.of[i] = db_column_int(s, 1);
	if (row == 0)
		*ids = found;
	return row;
}

/* The statements of one transaction. */
static int
keep(struct db *db, int64_t application_id, const struct command_id *list,
    size_t count, struct err *err)
{
	auto_stmt struct stmt *forget = db_statement(db,
	    STATEMENT_COMMAND_ID_FORGET);

	db_bind_int(forget, ":application_id", application_id);
	if (db_run(db, forget, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		auto_stmt struct stmt *s = db_statement(db,
		    STATEMENT_COMMAND_ID_KEEP);

		db_bind_int(s, ":application_id", application_id);
		db_bind_text(s, ":name", list[i].name);
		db_bind_int(s, ":id", list[i].id);
		if (db_run(db, s, err) < 0)
			return -1;
	}
	return 0;
}

int
command_ids_keep(struct db *db, int64_t application_id,
    const struct command_id *list, size_t count, struct err *err)
{
	if (db_begin(db, err) != 0)
		return -1;
	if (keep(db, application_id, list, count, err) == 0 &&
	    db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return -1;
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
