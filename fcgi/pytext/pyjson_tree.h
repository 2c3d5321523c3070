#ifndef PYJSON_TREE_H
#define PYJSON_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "pyjson.h"

/*
 * How pyjson.c builds a tree: values are pushed on a stack; closing an array or
 * an object takes what lies above `base` off it and pushes the whole.  All
 * memory comes in chunks that pyjson_release() frees.
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
