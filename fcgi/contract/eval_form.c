/* SPDX-License-Identifier: MIT */
#include "eval_parts.h"

#include <string.h>

#include "../pytext/pyutf8.h"

#include "../../sandbox/base/text.h"

#define FIELDS_MAX 1000
#define TITLE "Invalid URL-encoded"
#define DESCRIPTION "Could not parse URL-encoded body - "

/* Undo '+' and %XX; what is no UTF-8 then becomes U+FFFD. */
static char *
decode(struct pyjson *doc, const char *s, const char *end, size_t *len)
{
	auto_buf struct buf bytes = BUF_INIT((size_t)(end - s));
	auto_buf struct buf clean = BUF_INIT(3 * (size_t)(end - s));

	for (; s < end; s++) {
		unsigned char byte = *s == '+' ? ' ' : (unsigned char)*s;

		if (*s == '%' && end - s > 2 &&
		    text_parse_hex(s + 1, 2, &byte, 1))
			s += 2;
		buf_addc(&bytes, (char)byte);
	}
	pyutf8_add_whole(&clean, buf_str(&bytes), bytes.len);
	*len = clean.len;
	return pyjson_tree_copy(doc, buf_str(&clean), clean.len);
}

/* One field from s to end: its value goes into the array that has its name,
 * which stands where the name came first. */
static void
add_field(struct pyjson *doc, const char *s, const char *end)
{
	const char *mark = memchr(s, '=', (size_t)(end - s));
	struct pyvalue *values;
	struct pyvalue *value;
	size_t len;
	char *name;

	mark = mark == NULL ? end : mark;
	name = decode(doc, s, mark, &len);
	values = pyvalue_find(&doc->root, name, len);
	if (values == NULL) {
		values = pyjson_tree_add(doc, &doc->root);
		values->type = PYVALUE_ARRAY;
		values->name = name;
		values->name_len = len;
	}
	value = pyjson_tree_add(doc, values);
	value->type = PYVALUE_STRING;
	value->u.text = decode(doc, mark < end ? mark + 1 : end, end,
	    &value->count);
}

bool
eval_parse_form(struct pyjson *doc, const char *body, size_t len,
    struct eval_refusal *refusal)
{
	const char *end = body + len;
	struct pyvalue *member;
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)body[i] >= 0x80)
			return eval_refuse_with(refusal, 400, TITLE,
			    DESCRIPTION
			    "'ascii' codec can't decode byte 0x%02x in "
			    "position %zu: ordinal not in range(128)",
			    (unsigned)(unsigned char)body[i], i);
	pyjson_tree_init(doc);
	doc->root.type = PYVALUE_OBJECT;
	while (body < end) {
		const char *stop = memchr(body, '&', (size_t)(end - body));

		stop = stop == NULL ? end : stop;
		if (stop > body && ++count == FIELDS_MAX)
			return eval_refuse_with(refusal, 400, TITLE,
			    DESCRIPTION "too many fields");
		if (stop > body)
			add_field(doc, body, stop);
		body = stop + 1;
	}
	/* What came once is no array. */
	member = doc->root.u.parts.first;
	for (; member != NULL; member = member->next)
		if (member->count == 1)
			pyvalue_set(member, member->u.parts.first);
	return true;
}
