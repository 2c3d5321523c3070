/* SPDX-License-Identifier: MIT */
#include "pyjson_tree.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"

#define CHUNK 65536
#define ALIGN alignof(max_align_t)

struct pyjson_chunk {
	struct pyjson_chunk *next;
	size_t used;
	size_t cap;
	alignas(max_align_t) char data[];
};

/* Memory that lives as long as the tree. */
static void *
tree_alloc(struct pyjson_tree *tree, size_t size)
{
	struct pyjson_chunk *chunk = tree->chunks;
	size_t need = (size + ALIGN - 1) / ALIGN * ALIGN;
	void *place;

	if (chunk == NULL || chunk->cap - chunk->used < need) {
		struct pyjson_chunk **link = &tree->chunks;

		/* What is left of the present chunk may be more than what will
		 * be left of a large one, which goes behind it. */
		if (need > CHUNK && chunk != NULL)
			link = &chunk->next;
		chunk = xmalloc(sizeof(*chunk) + (need > CHUNK ? need : CHUNK));
		chunk->cap = need > CHUNK ? need : CHUNK;
		chunk->used = 0;
		chunk->next = *link;
		*link = chunk;
	}
	place = chunk->data + chunk->used;
	chunk->used += need;
	return place;
}

void
pyjson_tree_init(struct pyjson_tree *tree, size_t values_max)
{
	*tree = (struct pyjson_tree){ .left = values_max };
}

bool
pyjson_tree_push(struct pyjson_tree *tree, struct pyvalue value)
{
	if (tree->left == 0)
		return false;
	tree->left--;
	if (tree->depth == tree->cap) {
		tree->cap = tree->cap > 0 ? tree->cap * 2 : 64;
		tree->stack = xrealloc(tree->stack,
		    tree->cap * sizeof(*tree->stack));
	}
	tree->stack[tree->depth++] = value;
	return true;
}

bool
pyjson_tree_close_array(struct pyjson_tree *tree, size_t base)
{
	size_t count = tree->depth - base;
	struct pyvalue array = { .type = PYVALUE_ARRAY, .count = count };

	if (count > 0) {
		array.u.items = tree_alloc(tree,
		    count * sizeof(struct pyvalue));
		memcpy(array.u.items, tree->stack + base,
		    count * sizeof(struct pyvalue));
	}
	tree->depth = base;
	return pyjson_tree_push(tree, array);
}

static bool
same_name(const struct pymember *a, const struct pymember *b)
{
	return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

/* By length, name and place: equal names stand together, in their order. */
static int
compare_members(const void *a, const void *b)
{
	const struct pymember *x = *(struct pymember *const *)a;
	const struct pymember *y = *(struct pymember *const *)b;
	int order;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	order = memcmp(x->name, y->name, x->len);
	return order != 0 ? order : x < y ? -1 : x > y;
}

/* Of equal names the first gets the last value, and the others go.  How many
 * are left. */
static size_t
drop_repeated(struct pymember *members, size_t count)
{
	auto_free struct pymember **order = xcalloc(count, sizeof(*order));
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		order[i] = &members[i];
	qsort(order, count, sizeof(*order), compare_members);
	for (size_t i = 1, first = 0; i < count; i++) {
		if (same_name(order[first], order[i])) {
			order[first]->value = order[i]->value;
			order[i]->name = NULL;
		} else {
			first = i;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (members[i].name != NULL)
			members[kept++] = members[i];
	return kept;
}

bool
pyjson_tree_close_object(struct pyjson_tree *tree, size_t base)
{
	size_t count = (tree->depth - base) / 2;
	struct pyvalue object = { .type = PYVALUE_OBJECT };
	const struct pyvalue *parts = tree->stack + base;

	if (count > 0) {
		object.u.members = tree_alloc(tree,
		    count * sizeof(struct pymember));
		for (size_t i = 0; i < count; i++)
			object.u.members[i] = (struct pymember){
				.name = parts[2 * i].u.text,
				.len = parts[2 * i].count,
				.value = parts[2 * i + 1],
			};
		object.count = count == 1 ?
		    1 :
		    drop_repeated(object.u.members, count);
	}
	tree->depth = base;
	return pyjson_tree_push(tree, object);
}

char *
pyjson_tree_copy(struct pyjson_tree *tree, const char *s, size_t len)
{
	char *copy = tree_alloc(tree, len + 1);

	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

void
pyjson_tree_finish(struct pyjson_tree *tree, struct pyjson *doc)
{
	memset(doc, 0, sizeof(*doc));
	if (tree->depth > 0)
		doc->root = tree->stack[0];
	doc->chunks = tree->chunks;
	free(tree->stack);
	pyjson_tree_init(tree, 0);
}

void
pyjson_release(struct pyjson *doc)
{
	struct pyjson_chunk *next;

	for (struct pyjson_chunk *c = doc->chunks; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	memset(doc, 0, sizeof(*doc));
}

const struct pyvalue *
pyvalue_get(const struct pyvalue *object, const char *name)
{
	size_t len = strlen(name);

	if (object->type != PYVALUE_OBJECT)
		return NULL;
	for (size_t i = 0; i < object->count; i++)
		if (object->u.members[i].len == len &&
		    memcmp(object->u.members[i].name, name, len) == 0)
			return &object->u.members[i].value;
	return NULL;
}
