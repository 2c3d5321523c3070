/* SPDX-License-Identifier: MIT */
#ifndef PYJSON_H
#define PYJSON_H

#include <obstack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Bytes of s before the first that does not stand for itself in a JSON string:
 * a control character (DEL is one), '"', '\\', or what is not ASCII.  len when
 * there is none. */
size_t pyplain_span(const char *s, size_t len);

/*
 * The values that a JSON text stands for, and how a tree of them is built.
 */
enum pyvalue_type {
	PYVALUE_NULL,
	PYVALUE_BOOL,
	PYVALUE_INT,
	PYVALUE_BIG, /* an integer beyond int64: its digits as text */
	PYVALUE_FLOAT,
	PYVALUE_STRING,
	PYVALUE_ARRAY,
	PYVALUE_OBJECT,
};

struct pyvalue {
	enum pyvalue_type type;
	size_t count; /* bytes of text, items, members */
	union {
		struct {
			struct pyvalue *first; /* in the order of the text */
			struct pyvalue *last;
		} parts; /* of an array or an object */
		bool truth;
		int64_t integer;
		double real;
		char *text; /* STRING and BIG; followed by a NUL */
	} u;
	/* Neighbours of a part and, in an object, its name. */
	struct pyvalue *next;
	struct pyvalue *prev;
	char *name; /* followed by a NUL */
	size_t name_len;
};

/* A parsed text; owns all that its values point to.  All zero there is nothing
 * to release. */
struct pyjson {
	struct pyvalue root;
	struct obstack *memory;
};

void pyjson_release(struct pyjson *doc);

/* A member of an object; NULL: there is none, or it is no object, or NULL. */
const struct pyvalue *pyvalue_get(const struct pyvalue *object,
    const char *name);
struct pyvalue *pyvalue_find(const struct pyvalue *object, const char *name,
    size_t len);
/* Is there no value, or null? */
static inline bool
pyvalue_is_absent(const struct pyvalue *value)
{
	return value == NULL || value->type == PYVALUE_NULL;
}

/* Is the value that text?  NULL is none. */
bool pyvalue_is(const struct pyvalue *value, const char *text);
/* A text that is Unicode and holds no NUL; NULL: it is something else, or there
 * is no value. */
const char *pyvalue_text(const struct pyvalue *value);
/* An integer; one beyond int64 as the nearest that int64 has.  False: it is
 * none. */
bool pyvalue_integer(const struct pyvalue *value, int64_t *number);

/* ---- building one ---- */

/* Begin a document whose root is null. */
void pyjson_tree_init(struct pyjson *doc);
/* A new part at the end of an array or an object: null, without a name. */
struct pyvalue *pyjson_tree_add(struct pyjson *doc, struct pyvalue *whole);
/* Give a part the value of another: its place and its name stay. */
void pyvalue_set(struct pyvalue *part, const struct pyvalue *value);
/* Memory that lives as long as the document: an array of zeros, or a copy with
 * a NUL after it. */
void *pyjson_tree_array(struct pyjson *doc, size_t count, size_t size);
char *pyjson_tree_copy(struct pyjson *doc, const char *s, size_t len);

/*
 * JSON exactly as CPython's json.loads() reads it: what it takes (NaN, numbers
 * of any size, lone surrogates, NUL, the last of two equal names), what it
 * refuses, with which words and at which place.  The words are those of 3.11.
 * Two bounds are ours: nesting, and how many values there are.
 */
#define PYJSON_DEPTH_MAX 1000
#define PYJSON_VALUES_MAX 1000000

enum pyjson_fault {
	PYJSON_SYNTAX, /* a JSONDecodeError: text, line, column, position */
	PYJSON_VALUE,  /* another ValueError: text is all of it */
	PYJSON_LIMIT,  /* one of our bounds: text, line, column, position */
};

struct pyjson_error {
	enum pyjson_fault fault;
	char text[192];
	size_t line;
	size_t column;
	size_t position; /* in code points */
};

enum pyjson_source {
	PYJSON_DECODED, /* json.loads(body.decode()) */
	PYJSON_BYTES,	/* json.loads(body): a BOM is skipped, surrogates in
			 * UTF-8 pass; UTF-16 and UTF-32 are refused here */
	PYJSON_STRICT,	/* as PYJSON_DECODED, but NaN and the infinities, which
			 * JSON does not have, are refused */
};

/* Parse a body that a NUL follows; it is not needed afterwards.  On false there
 * is nothing to release; else pyjson_release(). */
bool pyjson_parse(struct pyjson *doc, const char *body, size_t len,
    enum pyjson_source source, struct pyjson_error *error);
/* Append str() of the exception: "…: line 1 column 13 (char 12)". */
void pyjson_explain(struct buf *out, const struct pyjson_error *error);

#endif
