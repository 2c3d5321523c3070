/* SPDX-License-Identifier: MIT */
#ifndef FIELDS_H
#define FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/jtree.h"

struct buf;

/*
 * The body of a request, read by a table: each row is a member of an object,
 * with its bounds and with the place in a struct where its value goes.
 */
enum field_kind {
	FIELD_ANY,    /* the value as it is: const json_t * */
	FIELD_TEXT,   /* any string: struct cell_bytes */
	FIELD_WORD,   /* the same, not empty and without NUL */
	FIELD_INT,    /* int64_t */
	FIELD_WHOLE,  /* int64_t; 5.0 is 5 */
	FIELD_NUMBER, /* double */
	FIELD_BOOL,   /* bool */
	FIELD_LIST,   /* struct field_list */
	FIELD_OBJECT, /* in errors alone */
};

/* Members that are not there leave their place alone, but for numbers and
 * truths, which are set to `standard`. */
struct field {
	const char *name; /* NULL: the end of the table */
	enum field_kind kind;
	size_t offset;
	bool required;
	bool nullable; /* null is as if it were not there */
	int64_t standard;
	int64_t min; /* of a number */
	int64_t max; /* of a number, of bytes, of items; 0: no bound */
	/* Of a list: the rows of its items, which are objects, and the size of
	 * the struct of an item.  NULL: the items are strings. */
	const struct field *items;
	size_t size;
};

/* A list of the document's own; items NULL: it was not sent. */
struct field_list {
	void *items;
	size_t count;
};

/* A place in a body: {"files", true, 0, "path"}, {"code"}, or nothing. */
struct field_place {
	const char *member; /* NULL: the body itself */
	bool indexed;
	size_t index;
	const char *inner; /* of the item; NULL: the item itself */
};

enum field_fault { FIELD_MISSING, FIELD_TYPE, FIELD_VALUE };

struct field_error {
	enum field_fault fault;
	enum field_kind kind; /* the kind that belongs there */
	struct field_place place;
	/* The value that was sent; where a member is missing, the object around
	 * it. */
	const json_t *value;
	char text[80]; /* "must be a string", "is missing" */
};

/* Read an object into a struct.  False: the first fault in the order of the
 * table. */
bool fields_read(struct jtree *doc, const struct field *rows,
    const json_t *object, void *into, struct field_error *error);
/* The same for one member. */
bool field_read(struct jtree *doc, const struct field *row,
    const json_t *object, void *into, struct field_error *error);
/* Is a Content-Type application/json, with any parameters?  NULL is none. */
bool fields_is_json(const char *content_type);
/* Append the place: "files[0].path". */
void field_place_add(struct buf *out, const struct field_place *place);
/* Append the error as a sentence without its end: "files[0].path must be a
 * string". */
void field_error_add(struct buf *out, const struct field_error *error);

#endif
