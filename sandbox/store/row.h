/* SPDX-License-Identifier: MIT */
#ifndef ROW_H
#define ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
