/* SPDX-License-Identifier: MIT */
#ifndef PYJSON_TREE_H
#define PYJSON_TREE_H

#include <obstack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	/* Of a part: its neighbours and, of a member, its name. */
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

/* A member of an object; NULL: there is none, or it is no object. */
const struct pyvalue *pyvalue_get(const struct pyvalue *object,
    const char *name);
struct pyvalue *pyvalue_find(const struct pyvalue *object, const char *name,
    size_t len);
/* A text that is Unicode and holds no NUL; NULL: it is something else, or there
 * is no value. */
const char *pyvalue_text(const struct pyvalue *value);
/* An integer; one beyond int64 as the nearest that int64 has.  False: it is
 * none. */
bool pyvalue_integer(const struct pyvalue *value, int64_t *number);

/* ---- building one ---- */

/* With null as its root. */
void pyjson_tree_init(struct pyjson *doc);
/* A new part at the end of an array or an object: null, without a name. */
struct pyvalue *pyjson_tree_add(struct pyjson *doc, struct pyvalue *whole);
/* Give a part the value of another: its place and its name stay. */
void pyvalue_set(struct pyvalue *part, const struct pyvalue *value);
/* Of members with equal names the first has the place and the last the value.
 */
void pyjson_tree_drop_repeated(struct pyvalue *object);
/* Memory that lives as long as the document: an array of zeros, or a copy with
 * a NUL after it. */
void *pyjson_tree_array(struct pyjson *doc, size_t count, size_t size);
char *pyjson_tree_copy(struct pyjson *doc, const char *s, size_t len);

#endif
