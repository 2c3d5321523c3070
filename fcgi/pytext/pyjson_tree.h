/* SPDX-License-Identifier: MIT */
#ifndef PYJSON_TREE_H
#define PYJSON_TREE_H

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

/* A parsed text; owns all that its values point to. */
struct pyjson {
	struct pyvalue root;
	struct pyjson_chunk *chunks;
};

void pyjson_release(struct pyjson *doc);

/* A member of an object; NULL: there is none, or it is no object. */
const struct pyvalue *pyvalue_get(const struct pyvalue *object,
    const char *name);

/*
 * Building one: values are pushed on a stack; closing an array or an object
 * takes what lies above `base` off it and pushes the whole.  All memory comes
 * in chunks that pyjson_release() frees.
 */
struct pyjson_tree {
	struct pyjson_chunk *chunks;
	struct pyvalue *stack;
	size_t depth; /* values on the stack */
	size_t cap;
	size_t left; /* values that may still come */
};

void pyjson_tree_init(struct pyjson_tree *tree, size_t values_max);
/* These three are false when there are too many values. */
bool pyjson_tree_push(struct pyjson_tree *tree, struct pyvalue value);
bool pyjson_tree_close_array(struct pyjson_tree *tree, size_t base);
/* Above base lie name, value, name, value…; of equal names the first has the
 * place and the last the value. */
bool pyjson_tree_close_object(struct pyjson_tree *tree, size_t base);
/* A copy that lives as long as the tree, with a NUL after it. */
char *pyjson_tree_copy(struct pyjson_tree *tree, const char *s, size_t len);
/* Hand over what there is: root is the bottom of the stack.  The tree is
 * empty afterwards. */
void pyjson_tree_finish(struct pyjson_tree *tree, struct pyjson *doc);

#endif
