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

static void *
tree_alloc(struct pyjson_tree *tree, size_t size)
{
	struct pyjson_chunk *chunk = tree->chunks;
	size_t need = (size + ALIGN - 1) / ALIGN * ALIGN;
	void *place;

	if (chunk == NULL || chunk->cap - chunk->used < need) {
		size_t cap = need > CHUNK ? need : CHUNK;

		chunk = xmalloc(sizeof(*chunk) + cap);
		chunk->used = 0;
		chunk->cap = cap;
		/* What is left of the present chunk may be more than what will
		 * be left of a large one. */
		if (need > CHUNK && tree->chunks != NULL) {
			chunk->next = tree->chunks->next;
			tree->chunks->next = chunk;
		} else {
			chunk->next = tree->chunks;
			tree->chunks = chunk;
		}
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

/* Put the whole in the place of its parts. */
static bool
tree_close(struct pyjson_tree *tree, size_t base, struct pyvalue whole)
{
	tree->depth = base;
	return pyjson_tree_push(tree, whole);
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
	return tree_close(tree, base, array);
}

struct place {
	struct pymember *member;
};

static int
compare_places(const void *a, const void *b)
{
	const struct pymember *x = ((const struct place *)a)->member;
	const struct pymember *y = ((const struct place *)b)->member;
	size_t common = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->name, y->name, common);

	if (order != 0)
		return order;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Give the first of equal names the last value, and mark the others. */
static size_t
mark_repeated(struct pymember *members, size_t count)
{
	auto_free struct place *order = xcalloc(count, sizeof(*order));
	size_t kept = count;
	size_t first = 0;

	for (size_t i = 0; i < count; i++)
		order[i].member = &members[i];
	qsort(order, count, sizeof(*order), compare_places);
	for (size_t i = 1; i < count; i++) {
		struct pymember *a = order[first].member;
		struct pymember *b = order[i].member;

		if (a->len != b->len || memcmp(a->name, b->name, a->len) != 0) {
			first = i;
			continue;
		}
		a->value = b->value;
		b->name = NULL;
		kept--;
	}
	return kept;
}

static void
drop_marked(struct pymember *members, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (members[i].name != NULL)
			members[kept++] = members[i];
}

bool
pyjson_tree_close_object(struct pyjson_tree *tree, size_t base)
{
	size_t count = (tree->depth - base) / 2;
	struct pyvalue object = { .type = PYVALUE_OBJECT, .count = count };
	const struct pyvalue *parts = tree->stack + base;

	if (count == 0)
		return tree_close(tree, base, object);
	object.u.members = tree_alloc(tree, count * sizeof(struct pymember));
	for (size_t i = 0; i < count; i++) {
		object.u.members[i].name = parts[2 * i].u.text;
		object.u.members[i].len = parts[2 * i].count;
		object.u.members[i].value = parts[2 * i + 1];
	}
	if (count > 1)
		object.count = mark_repeated(object.u.members, count);
	if (object.count < count)
		drop_marked(object.u.members, count);
	return tree_close(tree, base, object);
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
