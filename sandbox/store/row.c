/* SPDX-License-Identifier: MIT */
#include "store/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
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
find(const struct stmt *s, const char *name, int first)
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
	return find(s, name, 0);
}

void
row_read(const struct stmt *s, const struct row_field *fields, void *row)
{
	int next = 0;

	for (; fields->name != NULL; fields++) {
		int column = find(s, fields->name + 1, next);
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
