/* SPDX-License-Identifier: MIT */
#include "pyjson_tree.h"

#include <assert.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "pyutf8.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/log.h"

#define CHUNK 65536
/* All values and texts lie in an obstack, which goes as a whole. */
#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

void
pyjson_tree_init(struct pyjson *doc)
{
	memset(doc, 0, sizeof(*doc));
	doc->memory = xmalloc(sizeof(*doc->memory));
	obstack_begin(doc->memory, CHUNK);
}

struct pyvalue *
pyjson_tree_add(struct pyjson *doc, struct pyvalue *whole)
{
	struct pyvalue *part = obstack_alloc(doc->memory, sizeof(*part));

	*part = (struct pyvalue){ .prev = whole->u.parts.last };
	if (whole->count++ == 0)
		whole->u.parts.first = part;
	else
		part->prev->next = part;
	whole->u.parts.last = part;
	return part;
}

void
pyvalue_set(struct pyvalue *part, const struct pyvalue *value)
{
	part->type = value->type;
	part->count = value->count;
	part->u = value->u;
}

/* Any order will do: only whether they are equal is of interest. */
static int
compare_names(const void *a, const void *b)
{
	const struct pyvalue *x = a;
	const struct pyvalue *y = b;

	if (x->name_len != y->name_len)
		return x->name_len < y->name_len ? -1 : 1;
	return memcmp(x->name, y->name, x->name_len);
}

/* For tdestroy(): the members live on. */
static void
keep(void *member)
{
	(void)member;
}

/* The tree of names lives for this call, the members where they are. */
void
pyjson_tree_drop_repeated(struct pyvalue *object)
{
	struct pyvalue *member = object->u.parts.first;
	struct pyvalue **first;
	void *names = NULL;

	for (; member != NULL && object->count > 1; member = member->next) {
		first = tsearch(member, &names, compare_names);
		if (first == NULL)
			log_fatal(1, "out of memory");
		if (*first == member)
			continue;
		pyvalue_set(*first, member);
		member->prev->next = member->next;
		if (member->next != NULL)
			member->next->prev = member->prev;
		else
			object->u.parts.last = member->prev;
		object->count--;
	}
	tdestroy(names, keep);
}

void *
pyjson_tree_array(struct pyjson *doc, size_t count, size_t size)
{
	assert(count < INT_MAX / size);
	return memset(obstack_alloc(doc->memory, (int)(count * size)), 0,
	    count * size);
}

char *
pyjson_tree_copy(struct pyjson *doc, const char *s, size_t len)
{
	char *copy;

	assert(len < INT_MAX);
	copy = obstack_alloc(doc->memory, (int)len + 1);
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

void
pyjson_release(struct pyjson *doc)
{
	if (doc->memory != NULL)
		obstack_free(doc->memory, NULL);
	free(doc->memory);
	memset(doc, 0, sizeof(*doc));
}

const struct pyvalue *
pyvalue_get(const struct pyvalue *object, const char *name)
{
	return pyvalue_find(object, name, strlen(name));
}

struct pyvalue *
pyvalue_find(const struct pyvalue *object, const char *name, size_t len)
{
	struct pyvalue *part = NULL;

	if (object->type == PYVALUE_OBJECT)
		part = object->u.parts.first;
	while (part != NULL &&
	    (part->name_len != len || memcmp(part->name, name, len) != 0))
		part = part->next;
	return part;
}

const char *
pyvalue_text(const struct pyvalue *value)
{
	return value != NULL && value->type == PYVALUE_STRING &&
		strlen(value->u.text) == value->count &&
		!pyutf8_has_surrogate(value->u.text, value->count) ?
	    value->u.text :
	    NULL;
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
