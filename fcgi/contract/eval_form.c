/* SPDX-License-Identifier: MIT */
#include "eval_parts.h"

#include <string.h>

#include "../pytext/pyjson_tree.h"
#include "../pytext/pyutf8.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/text.h"

#define FIELDS_MAX 1000
#define TITLE "Invalid URL-encoded"
#define DESCRIPTION "Could not parse URL-encoded body - "

struct field {
	struct pyvalue name;
	struct pyvalue value;
	bool taken;
};

/* Undo '+' and %XX; what is no UTF-8 then becomes U+FFFD. */
static struct pyvalue
decode(struct pyjson_tree *tree, const char *s, size_t len)
{
	struct pyvalue text = { .type = PYVALUE_STRING };
	auto_buf struct buf bytes = BUF_INIT(len);
	auto_buf struct buf clean = BUF_INIT(3 * len);

	for (size_t i = 0; i < len; i++) {
		unsigned char byte;

		if (s[i] == '%' && i + 2 < len &&
		    text_parse_hex(s + i + 1, 2, &byte, 1)) {
			buf_addc(&bytes, (char)byte);
			i += 2;
		} else {
			buf_addc(&bytes, s[i] == '+' ? ' ' : s[i]);
		}
	}
	pyutf8_add_whole(&clean, buf_str(&bytes), bytes.len);
	text.count = clean.len;
	text.u.text = pyjson_tree_copy(tree, buf_str(&clean), clean.len);
	return text;
}

/* The fields of a body, at most FIELDS_MAX; how many they are. */
static size_t
split(struct pyjson_tree *tree, struct field *fields, const char *body,
    size_t len)
{
	const char *end = body + len;
	size_t count = 0;

	while (body < end && count < FIELDS_MAX) {
		const char *stop = memchr(body, '&', (size_t)(end - body));
		const char *name_end;
		const char *value;

		stop = stop == NULL ? end : stop;
		name_end = memchr(body, '=', (size_t)(stop - body));
		value = name_end == NULL ? stop : name_end + 1;
		name_end = name_end == NULL ? stop : name_end;
		if (stop > body)
			fields[count++] = (struct field){
				.name = decode(tree, body,
				    (size_t)(name_end - body)),
				.value = decode(tree, value,
				    (size_t)(stop - value)),
			};
		body = stop + 1;
	}
	return count;
}

static bool
same_name(const struct field *a, const struct field *b)
{
	return a->name.count == b->name.count &&
	    memcmp(a->name.u.text, b->name.u.text, a->name.count) == 0;
}

/* Push the value of a name, an array when it came more than once. */
static bool
push_values(struct pyjson_tree *tree, struct field *fields, size_t count)
{
	size_t base = tree->depth;

	for (size_t i = 0; i < count; i++) {
		if (!same_name(&fields[0], &fields[i]))
			continue;
		fields[i].taken = true;
		if (!pyjson_tree_push(tree, fields[i].value))
			return false;
	}
	return tree->depth - base == 1 || pyjson_tree_close_array(tree, base);
}

/* Fields in the order in which their names came first. */
bool
eval_parse_form(struct pyjson *doc, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	auto_free struct field *fields = NULL;
	struct pyjson_tree tree;
	size_t count;
	bool fits = true;

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)body[i] >= 0x80)
			return eval_refuse_with(refusal, 400, TITLE,
			    DESCRIPTION
			    "'ascii' codec can't decode byte 0x%02x in "
			    "position %zu: ordinal not in range(128)",
			    (unsigned)(unsigned char)body[i], i);
	fields = xcalloc(FIELDS_MAX, sizeof(*fields));
	pyjson_tree_init(&tree, 3 * FIELDS_MAX + 1);
	count = split(&tree, fields, body, len);
	for (size_t i = 0; i < count && fits; i++)
		if (!fields[i].taken)
			fits = pyjson_tree_push(&tree, fields[i].name) &&
			    push_values(&tree, fields + i, count - i);
	fits = fits && pyjson_tree_close_object(&tree, 0);
	pyjson_tree_finish(&tree, doc);
	return (fits && count < FIELDS_MAX) ||
	    eval_refuse_with(refusal, 400, TITLE,
		DESCRIPTION "too many fields");
}
