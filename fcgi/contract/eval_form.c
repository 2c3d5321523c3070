/* SPDX-License-Identifier: MIT */
#include "eval_parts.h"

#include <string.h>

#include "../pytext/pyutf8.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/text.h"

#define FIELDS_MAX 1000
#define TITLE "Invalid URL-encoded"
#define DESCRIPTION "Could not parse URL-encoded body - "

struct field {
	struct pyvalue name; /* PYVALUE_NULL: it is in the object already */
	struct pyvalue value;
};

/* Undo '+' and %XX; what is no UTF-8 then becomes U+FFFD. */
static struct pyvalue
decode(struct pyjson *doc, const char *s, const char *end)
{
	size_t len = (size_t)(end - s);
	auto_buf struct buf bytes = BUF_INIT(len);
	auto_buf struct buf clean = BUF_INIT(3 * len);

	for (; s < end; s++) {
		unsigned char byte = *s == '+' ? ' ' : (unsigned char)*s;

		if (*s == '%' && end - s > 2 &&
		    text_parse_hex(s + 1, 2, &byte, 1))
			s += 2;
		buf_addc(&bytes, (char)byte);
	}
	pyutf8_add_whole(&clean, buf_str(&bytes), bytes.len);
	return pyjson_tree_text(doc, PYVALUE_STRING, buf_str(&clean),
	    clean.len);
}

/* The fields of a body, at most FIELDS_MAX; how many they are. */
static size_t
split(struct pyjson *doc, struct field *fields, const char *body, size_t len)
{
	const char *end = body + len;
	size_t count = 0;

	while (body < end && count < FIELDS_MAX) {
		const char *stop = memchr(body, '&', (size_t)(end - body));
		const char *mark;

		stop = stop == NULL ? end : stop;
		mark = memchr(body, '=', (size_t)(stop - body));
		mark = mark == NULL ? stop : mark;
		if (stop > body)
			fields[count++] = (struct field){
				.name = decode(doc, body, mark),
				.value = decode(doc,
				    mark < stop ? mark + 1 : stop, stop),
			};
		body = stop + 1;
	}
	return count;
}

/* Push the first field's name and the value of all that are called so, an array
 * when there are more than one. */
static void
push_values(struct pyjson *doc, struct field *fields, size_t count)
{
	struct pyvalue name = fields[0].name;
	size_t base = doc->depth + 1;

	(void)pyjson_tree_push(doc, name);
	for (size_t i = 0; i < count; i++) {
		struct pyvalue *other = &fields[i].name;

		if (other->type != name.type || other->count != name.count ||
		    memcmp(other->u.text, name.u.text, name.count) != 0)
			continue;
		other->type = PYVALUE_NULL;
		(void)pyjson_tree_push(doc, fields[i].value);
	}
	if (doc->depth - base > 1)
		(void)pyjson_tree_close_array(doc, base);
}

/* Fields in the order in which their names came first. */
bool
eval_parse_form(struct pyjson *doc, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	auto_free struct field *fields = NULL;
	size_t count;

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)body[i] >= 0x80)
			return eval_refuse_with(refusal, 400, TITLE,
			    DESCRIPTION
			    "'ascii' codec can't decode byte 0x%02x in "
			    "position %zu: ordinal not in range(128)",
			    (unsigned)(unsigned char)body[i], i);
	fields = xcalloc(FIELDS_MAX, sizeof(*fields));
	/* More values than so many fields can become. */
	pyjson_tree_init(doc, 3 * FIELDS_MAX + 1);
	count = split(doc, fields, body, len);
	for (size_t i = 0; i < count; i++)
		if (fields[i].name.type == PYVALUE_STRING)
			push_values(doc, fields + i, count - i);
	(void)pyjson_tree_close_object(doc, 0);
	pyjson_tree_finish(doc);
	return count < FIELDS_MAX ||
	    eval_refuse_with(refusal, 400, TITLE,
		DESCRIPTION "too many fields");
}
