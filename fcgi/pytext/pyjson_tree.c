/* SPDX-License-Identifier: MIT */
#include "pyjson_tree.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"

#define CHUNK 65536
#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* Memory that lives as long as the document. */
static void *
tree_alloc(struct pyjson *doc, size_t size)
{
	assert(size <= INT_MAX);
	return obstack_alloc(doc->memory, (int)size);
}

void
pyjson_tree_init(struct pyjson *doc, size_t values_max)
{
	*doc = (struct pyjson){ .left = values_max };
	doc->memory = xmalloc(sizeof(*doc->memory));
	obstack_begin(doc->memory, CHUNK);
}

bool
pyjson_tree_push(struct pyjson *doc, struct pyvalue value)
{
	if (doc->left == 0)
		return false;
	doc->left--;
	if (doc->depth == doc->cap) {
		doc->cap = doc->cap > 0 ? doc->cap * 2 : 64;
		doc->stack = xrealloc(doc->stack,
		    doc->cap * sizeof(*doc->stack));
	}
	doc->stack[doc->depth++] = value;
	return true;
}

bool
pyjson_tree_close_array(struct pyjson *doc, size_t base)
{
	size_t count = doc->depth - base;
	struct pyvalue array = { .type = PYVALUE_ARRAY, .count = count };

	if (count > 0) {
		array.u.items = tree_alloc(doc, count * sizeof(struct pyvalue));
		memcpy(array.u.items, doc->stack + base,
		    count * sizeof(struct pyvalue));
	}
	doc->depth = base;
	return pyjson_tree_push(doc, array);
}

static int
compare_names(const struct pymember *x, const struct pymember *y)
{
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->name, y->name, x->len);
}

/* By name and place: equal names stand together, in their order. */
static int
compare_members(const void *a, const void *b)
{
	const struct pymember *x = *(struct pymember *const *)a;
	const struct pymember *y = *(struct pymember *const *)b;
	int order = compare_names(x, y);

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
	/* From the end, so that the last value goes on to the first. */
	for (size_t i = count - 1; i > 0; i--)
		if (compare_names(order[i - 1], order[i]) == 0) {
			order[i - 1]->value = order[i]->value;
			order[i]->name = NULL;
		}
	for (size_t i = 0; i < count; i++)
		if (members[i].name != NULL)
			members[kept++] = members[i];
	return kept;
}

bool
pyjson_tree_close_object(struct pyjson *doc, size_t base)
{
	size_t count = (doc->depth - base) / 2;
	struct pyvalue object = { .type = PYVALUE_OBJECT };
	const struct pyvalue *parts = doc->stack + base;

	if (count > 0) {
		object.u.members = tree_alloc(doc,
		    count * sizeof(struct pymember));
		for (size_t i = 0; i < count; i++)
			object.u.members[i] = (struct pymember){
				.name = parts[2 * i].u.text,
				.len = parts[2 * i].count,
				.value = parts[2 * i + 1],
			};
		object.count = drop_repeated(object.u.members, count);
	}
	doc->depth = base;
	return pyjson_tree_push(doc, object);
}

struct pyvalue
pyjson_tree_text(struct pyjson *doc, enum pyvalue_type type, const char *s,
    size_t len)
{
	struct pyvalue text = { .type = type, .count = len };

	text.u.text = tree_alloc(doc, len + 1);
	memcpy(text.u.text, s, len);
	text.u.text[len] = '\0';
	return text;
}

void
pyjson_tree_finish(struct pyjson *doc)
{
	if (doc->depth > 0)
		doc->root = doc->stack[0];
	free(doc->stack);
	doc->stack = NULL;
}

void
pyjson_release(struct pyjson *doc)
{
	if (doc->memory != NULL)
		obstack_free(doc->memory, NULL);
	free(doc->memory);
	free(doc->stack);
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

bool
pyvalue_integer(const struct pyvalue *value, int64_t *number)
{
	if (value->type == PYVALUE_INT)
		*number = value->u.integer;
	else if (value->type == PYVALUE_BIG)
		*number = value->u.text[0] == '-' ? INT64_MIN : INT64_MAX;
	return value->type == PYVALUE_INT || value->type == PYVALUE_BIG;
}
