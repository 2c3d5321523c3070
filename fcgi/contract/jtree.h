/* SPDX-License-Identifier: MIT */
#ifndef JTREE_H
#define JTREE_H

#include <obstack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Bytes of s before the first that does not stand for itself in a JSON string:
 * a control character (DEL is one), '"', '\\', or what is not ASCII.  len when
 * there is none. */
size_t jtree_plain_span(const char *s, size_t len);

/* The values that a JSON text stands for. */
enum jvalue_type {
	JVALUE_NULL,
	JVALUE_BOOL,
	JVALUE_NUMBER,
	JVALUE_STRING,
	JVALUE_ARRAY,
	JVALUE_OBJECT,
};

struct jvalue {
	enum jvalue_type type;
	size_t count; /* bytes of text, items, members */
	union {
		struct {
			struct jvalue *first; /* in the order of the text */
			struct jvalue *last;
		} parts; /* of an array or an object */
		bool truth;
		char *text; /* of a STRING, or of a NUMBER as it was sent;
			     * followed by a NUL */
	} u;
	/* Neighbours of a part and, in an object, its name. */
	struct jvalue *next;
	struct jvalue *prev;
	char *name; /* followed by a NUL */
	size_t name_len;
};

/* A parsed text; owns all that its values point to.  All zero there is nothing
 * to release. */
struct jtree {
	struct jvalue root;
	struct obstack *memory;
};

void jtree_release(struct jtree *doc);

/* A member of an object, the last of equal names; NULL: there is none, or it is
 * no object, or NULL. */
const struct jvalue *jvalue_get(const struct jvalue *object, const char *name);
/* The first part of an array or an object; NULL: there is none, or it is
 * neither, or NULL. */
const struct jvalue *jvalue_first(const struct jvalue *whole);
/* Is there no value, or null? */
static inline bool
jvalue_is_absent(const struct jvalue *value)
{
	return value == NULL || value->type == JVALUE_NULL;
}

/* Is the value of that type?  NULL is of none. */
static inline bool
jvalue_is_type(const struct jvalue *value, enum jvalue_type type)
{
	return value != NULL && value->type == type;
}

/* Is the value that text?  NULL is none. */
bool jvalue_is(const struct jvalue *value, const char *text);
/* Is the value true?  NULL is not. */
bool jvalue_is_true(const struct jvalue *value);
/* A text that is Unicode and holds no NUL; NULL: it is something else, or there
 * is no value. */
const char *jvalue_text(const struct jvalue *value);
/* An integer; one beyond int64 as the nearest that int64 has.  False: the value
 * is none, or NULL. */
bool jvalue_integer(const struct jvalue *value, int64_t *number);
/* Any number.  False: the value is none, or NULL. */
bool jvalue_number(const struct jvalue *value, double *number);

/* Memory that lives as long as the document: an array of zeros, or a copy with
 * a NUL after it. */
void *jtree_array(struct jtree *doc, size_t count, size_t size);
char *jtree_copy(struct jtree *doc, const char *s, size_t len);

/*
 * JSON (RFC 8259) in UTF-8, with or without a byte order mark.  A lone
 * surrogate, which only \ud800 can write, stays in the tree as three bytes
 * (utf8_decoder.h).
 */
#define JTREE_DEPTH_MAX 1000
#define JTREE_VALUES_MAX 1000000
/* Digits that Python's int() takes. */
#define JTREE_NUMBER_MAX 4300

struct jtree_error {
	const char *text; /* static: "',' or '}' is missing" */
	bool is_syntax;	  /* else the encoding or one of the bounds */
	size_t line;	  /* from 1 */
	size_t column;	  /* from 1, in code points */
};

/* Parse a body that a NUL follows; it is not needed afterwards.  On false there
 * is nothing to release; else jtree_release(). */
bool jtree_parse(struct jtree *doc, const char *body, size_t len,
    struct jtree_error *error);
/* Append the error for people: "a value is missing at line 1, column 13". */
void jtree_explain(struct buf *out, const struct jtree_error *error);

#endif
