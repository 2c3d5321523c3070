/* SPDX-License-Identifier: MIT */
#include "command_id.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "../base/buf.h"
#include "db.h"

#define GROUP "il"

/* One command's; 0: it is not known. */
static int
find(struct db *db, int64_t application_id, const char *name, int64_t *id,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_COMMAND_ID_FIND);
	int result;

	db_bind_int(s, ":application_id", application_id);
	db_bind_text(s, ":name", name);
	result = db_step(db, s, err);
	*id = result == 1 ? db_column_int(s, 0) : 0;
	return result < 0 ? -1 : 0;
}

int
command_ids_load(struct db *db, int64_t application_id, struct command_ids *ids,
    struct err *err)
{
	struct command_ids found = { 0 };
	int64_t group;

	if (find(db, application_id, GROUP, &group, err) < 0)
		return -1;
	for (int i = 0; i < JOB_UNKNOWN; i++) {
		if (command_is_under_il((enum job_kind)i))
			found.of[i] = group;
		else if (commands[i].place == COMMAND_ROOT &&
		    find(db, application_id, commands[i].name, &found.of[i],
			err) < 0)
			return -1;
	}
	*ids = found;
	return 0;
}

/* One statement, in the transaction of those before it. */
static int
keep(struct db *db, int64_t application_id, const struct command_id *one,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_COMMAND_ID_KEEP);

	db_bind_int(s, ":application_id", application_id);
	db_bind_text(s, ":name", one->name);
	db_bind_int(s, ":id", one->id);
	return db_run(db, s, err);
}

static int
forget(struct db *db, int64_t application_id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db,
	    STATEMENT_COMMAND_ID_FORGET);

	db_bind_int(s, ":application_id", application_id);
	return db_run(db, s, err);
}

int
command_ids_keep(struct db *db, int64_t application_id,
    const struct command_id *list, size_t count, struct err *err)
{
	int result;

	if (db_begin(db, err) < 0)
		return -1;
	result = forget(db, application_id, err);
	for (size_t i = 0; i < count && result >= 0; i++)
		result = keep(db, application_id, &list[i], err);
	if (result >= 0)
		return db_commit(db, err);
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
