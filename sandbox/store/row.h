/* SPDX-License-Identifier: MIT */
#ifndef ROW_H
#define ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct err;
struct stmt;

/*
 * The columns of a table that are members of a struct, to write and read many
 * at once.  A statement is bound the columns that it names; a struct is given
 * those that a row has.  A list ends with ROW_END.
 */
struct row_field {
	const char *name; /* ":id" */
	enum { ROW_INT, ROW_BOOL, ROW_TEXT, ROW_CHARS } type;
	size_t at;
	size_t size; /* of chars */
};
/* int64_t, bool, char * (heap when it was read), or an array of chars, which
 * cuts. */
#define ROW_TYPE(row, member) \
	_Generic(&((row *)NULL)->member, int64_t *: ROW_INT, bool *: ROW_BOOL, \
	    char **: ROW_TEXT, const char **: ROW_TEXT, default: ROW_CHARS)
#define ROW_FIELD(row, member) \
	{ \
		":" #member, ROW_TYPE(row, member), offsetof(row, member), \
		    sizeof(((row *)NULL)->member) \
	}
#define ROW_END \
	{ \
		.name = NULL \
	}
void row_bind(struct stmt *s, const struct row_field *fields, const void *row);
void row_read(const struct stmt *s, const struct row_field *fields, void *row);
/* The column of this name in the row; -1: there is none. */
int row_column(const struct stmt *s, const char *name);
/* Free the texts. */
void row_release(const struct row_field *fields, void *row);

/* ---- ids of rows ---- */

/*
 * Ids of jobs and views.  An id says when its row was made and in which slot
 * its user is, so that any node knows whose an id is, and it is unique over all
 * nodes:
 *
 *	milliseconds since 2015 << 22 | slot << 12 | counter
 *
 * In each table ids grow, whatever the clock does, and none is used again.  Ids
 * below ROW_ID_FIRST are of an older version and say nothing.
 */
#define ROW_ID_FIRST (INT64_C(1) << 40)
/* The last one that a clock gives, with 50 days of ids behind it.  A row that
 * comes from elsewhere has none above it, or none would be left for others. */
#define ROW_ID_LAST ((((INT64_C(1) << 41) - (INT64_C(1) << 32) + 1) << 22) - 1)

/* The slot of a row's user; -1: the id does not say it. */
int row_id_slot(int64_t id);

/* The next id of a table whose newest id is given (0: none), by the wall
 * clock, for a user in this slot. */
int64_t row_id_next(int64_t newest, int64_t now_ms, int slot);

/* The same for a row that a transaction inserts into this table. */
int row_id_make(struct db *db, const char *table, int64_t user_id, int64_t *id,
    struct err *err);

#endif
