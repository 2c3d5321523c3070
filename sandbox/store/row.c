/* SPDX-License-Identifier: MIT */
#include "store/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "protocol/node_table.h"
#include "store/connection.h"
#include "store/db.h"

void
row_bind(struct stmt *s, const struct row_field *fields, const void *row)
{
	for (; fields->name != NULL; fields++) {
		const char *at = (const char *)row + fields->at;

		if (sqlite3_bind_parameter_index(s->handle, fields->name) == 0)
			continue;
		switch (fields->type) {
		case ROW_INT:
			db_bind_int(s, fields->name, *(const int64_t *)at);
			break;
		case ROW_BOOL:
			db_bind_int(s, fields->name, *(const bool *)at);
			break;
		case ROW_TEXT:
			db_bind_text(s, fields->name, *(char *const *)at);
			break;
		case ROW_CHARS:
			db_bind_text(s, fields->name, at);
			break;
		}
	}
}

/* The search begins with the column where it is, if all are in their order. */
static int
row_find(const struct stmt *s, const char *name, int first)
{
	int count = sqlite3_column_count(s->handle);

	for (int i = 0; i < count; i++) {
		int column = (first + i) % count;

		if (strcmp(sqlite3_column_name(s->handle, column), name) == 0)
			return column;
	}
	return -1;
}

int
row_column(const struct stmt *s, const char *name)
{
	return row_find(s, name, 0);
}

void
row_read(const struct stmt *s, const struct row_field *fields, void *row)
{
	int next = 0;

	for (; fields->name != NULL; fields++) {
		int column = row_find(s, fields->name + 1, next);
		char *at = (char *)row + fields->at;

		if (column < 0)
			continue;
		next = column + 1;
		switch (fields->type) {
		case ROW_INT:
			*(int64_t *)at = db_column_int(s, column);
			break;
		case ROW_BOOL:
			*(bool *)at = db_column_int(s, column) != 0;
			break;
		case ROW_TEXT:
			*(char **)at = xstrdup(db_column_text(s, column));
			break;
		case ROW_CHARS:
			(void)snprintf(at, fields->size, "%s",
			    db_column_text(s, column));
			break;
		}
	}
}

void
row_release(const struct row_field *fields, void *row)
{
	for (; fields->name != NULL; fields++)
		if (fields->type == ROW_TEXT)
			free(*(char **)((char *)row + fields->at));
}

/* ---- ids of rows ---- */

#define EPOCH_MS INT64_C(1420070400000) /* 2015, as of Discord's ids */
#define TIME_SHIFT 22
#define SLOT_SHIFT 12
#define COUNTER_MAX ((INT64_C(1) << SLOT_SHIFT) - 1)
#define REST_MASK ((INT64_C(1) << TIME_SHIFT) - 1)
/* A clock that is outside of these, in milliseconds since 2015, is no clock. */
#define TIME_FIRST (ROW_ID_FIRST >> TIME_SHIFT)
#define TIME_LAST (ROW_ID_LAST >> TIME_SHIFT)

_Static_assert(SLOTS == 1 << (TIME_SHIFT - SLOT_SHIFT), "a slot has its bits");

int
row_id_slot(int64_t id)
{
	return id < ROW_ID_FIRST ? -1 : (int)((id & REST_MASK) >> SLOT_SHIFT);
}

int64_t
row_id_next(int64_t newest, int64_t now_ms, int slot)
{
	int64_t ms = now_ms - EPOCH_MS;
	int64_t own = (int64_t)slot << SLOT_SHIFT;
	int64_t id;

	if (ms < TIME_FIRST || ms > TIME_LAST)
		ms = TIME_FIRST;
	id = ms << TIME_SHIFT | own;
	if (id > newest)
		return id;
	/* The clock stands or was set back: the first one above the newest. */
	id = (newest & ~REST_MASK) | own;
	if (id > newest)
		return id;
	return newest - id < COUNTER_MAX ? newest + 1 : id + REST_MASK + 1;
}

int
row_id_make(struct db *db, const char *table, int64_t user_id, int64_t *id,
    struct err *err)
{
	int64_t newest = db_number(db, STATEMENT_ROW_NEWEST,
	    DB_VALUES(BIND(":name", table)), err);

	if (newest < 0)
		return -1;
	*id = row_id_next(newest, clock_wall_ms(), slot_of(user_id));
	return 0;
}
