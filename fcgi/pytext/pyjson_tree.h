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

struct pymember;

struct pyvalue {
	enum pyvalue_type type;
	size_t count; /* bytes of text, items, members */
	union {
		bool truth;
		int64_t integer;
		double real;
		char *text; /* STRING and BIG; followed by a NUL */
		struct pyvalue *items;
		struct pymember *members; /* in the order of the text */
	} u;
};

struct pymember {
	const char *name; /* followed by a NUL */
	size_t len;
	struct pyvalue value;
};

/* A parsed text; owns all that its values point to.  All zero there is nothing
 * to release. */
struct pyjson {
	struct pyvalue root;
	struct obstack *memory;
	/* While it is built: */
	struct pyvalue *stack;
	size_t depth; /* values on the stack */
	size_t cap;
	size_t left; /* values that may still come */
};

void pyjson_release(struct pyjson *doc);

/* A member of an object; NULL: there is none, or it is no object. */
const struct pyvalue *pyvalue_get(const struct pyvalue *object,
    const char *name);

/* An integer; one beyond int64 as the nearest that int64 has.  False: it is
 * none. */
bool pyvalue_integer(const struct pyvalue *value, int64_t *number);

/*
 * Building one: values are pushed on a stack; closing an array or an object
 * takes what lies above `base` off it and pushes the whole.
 */
void pyjson_tree_init(struct pyjson *doc, size_t values_max);
/* These three are false when there are too many values. */
bool pyjson_tree_push(struct pyjson *doc, struct pyvalue value);
bool pyjson_tree_close_array(struct pyjson *doc, size_t base);
/* Above base lie name, value, name, value…; of equal names the first has the
 * place and the last the value. */
bool pyjson_tree_close_object(struct pyjson *doc, size_t base);
/* A text as a value, copied. */
struct pyvalue pyjson_tree_text(struct pyjson *doc, enum pyvalue_type type,
    const char *s, size_t len);
/* The bottom of the stack becomes the root. */
void pyjson_tree_finish(struct pyjson *doc);

#endif
