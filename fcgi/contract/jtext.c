/* SPDX-License-Identifier: MIT */
#include "contract/jtext.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "contract/jtree.h"

#include "base/buf.h"
#include "base/utf8.h"

/* ---- strings ---- */

/* Append \uXXXX; without printf, as there may be a million of them. */
static void
add_unit(struct buf *out, uint32_t unit)
{
	static const char hex[] = "0123456789abcdef";
	const char text[] = { '\\', 'u', hex[unit >> 12 & 15],
		hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15] };

	buf_add(out, text, sizeof(text));
}

/* Append the text of the character at s; how many bytes it was. */
static size_t
add_step(struct buf *out, const char *s, size_t len, enum jtext_style style)
{
	/* characters with a letter of their own */
	static const char marks[256] = {
		['"'] = '"',
		['\\'] = '\\',
		['\n'] = 'n',
		['\r'] = 'r',
		['\t'] = 't',
		['\f'] = 'f',
		['\b'] = 'b',
	};
	const char escape[] = { '\\', marks[(unsigned char)s[0]] };
	enum utf8_fault fault;
	char bytes[4];
	bool surrogate;
	uint32_t code;
	size_t step;

	if (escape[1] != '\0') {
		buf_add(out, escape, sizeof(escape));
		return 1;
	}
	step = utf8_look(s, len, style != JTEXT_CLEAN, &fault);
	code = fault == UTF8_FINE ? utf8_decode(s, step) : 0xfffd;
	surrogate = code >= 0xd800 && code <= 0xdfff;
	if (style != JTEXT_ASCII && code >= 0x7f && !surrogate) {
		buf_add(out, bytes, utf8_encode(code, bytes));
	} else if (code < 0x10000) {
		add_unit(out, code);
	} else {
		add_unit(out, 0xd800 + ((code - 0x10000) >> 10));
		add_unit(out, 0xdc00 + (code & 0x3ff));
	}
	return step;
}

/* Bytes that stand for themselves are added in one piece. */
void
jtext_add_text(struct buf *out, const char *s, size_t len,
    enum jtext_style style)
{
	size_t i = 0;

	while (i < len && !out->overflow) {
		size_t plain = jtree_plain_span(s + i, len - i);

		buf_add(out, s + i, plain);
		i += plain;
		if (i < len)
			i += add_step(out, s + i, len - i, style);
	}
}

void
jtext_add_string(struct buf *out, const char *s, size_t len,
    enum jtext_style style)
{
	buf_addc(out, '"');
	jtext_add_text(out, s, len, style);
	buf_addc(out, '"');
}

/* ---- values ---- */

/* JSON, and the form for people, differ in these alone. */
struct marks {
	char quote;
	const char *comma;
	const char *colon;
};

/* Append a string, or the name of a member. */
static void
add_string(struct buf *out, const char *s, size_t len,
    const struct marks *marks)
{
	buf_addc(out, marks->quote);
	jtext_add_text(out, s, len, JTEXT_UTF8);
	buf_addc(out, marks->quote);
}

static void add_value(struct buf *out, const struct jvalue *value,
    const struct marks *marks);

/* Append the items of an array, or the members of an object. */
static void
add_parts(struct buf *out, const struct jvalue *whole,
    const struct marks *marks)
{
	bool object = whole->type == JVALUE_OBJECT;
	const struct jvalue *part = whole->u.parts.first;

	buf_addc(out, object ? '{' : '[');
	for (; part != NULL && !out->overflow; part = part->next) {
		if (part->prev != NULL)
			buf_adds(out, marks->comma);
		if (object) {
			add_string(out, part->name, part->name_len, marks);
			buf_adds(out, marks->colon);
		}
		add_value(out, part, marks);
	}
	buf_addc(out, object ? '}' : ']');
}

/* Calls itself for parts, whose depth jtree.h bounds. */
static void
add_value(struct buf *out, const struct jvalue *value,
    const struct marks *marks)
{
	switch (value->type) {
	case JVALUE_NULL:
		buf_adds(out, "null");
		break;
	case JVALUE_BOOL:
		buf_adds(out, value->u.truth ? "true" : "false");
		break;
	case JVALUE_NUMBER:
		buf_add(out, value->u.text, value->count);
		break;
	case JVALUE_STRING:
		add_string(out, value->u.text, value->count, marks);
		break;
	case JVALUE_ARRAY:
	case JVALUE_OBJECT:
		add_parts(out, value, marks);
		break;
	}
}

void
jtext_add(struct buf *out, const struct jvalue *value)
{
	static const struct marks json = { '"', ",", ":" };

	add_value(out, value, &json);
}

void
jtext_add_quoted(struct buf *out, const struct jvalue *value)
{
	static const struct marks quoted = { '\'', ", ", ": " };

	add_value(out, value, &quoted);
}

/* Up to each conversion what stands there is added as it is. */
void
jtext_addf(struct buf *out, enum jtext_style style, const char *fmt, ...)
{
	static const char wide[] = "%" PRId64;
	va_list ap;

	va_start(ap, fmt);
	for (;;) {
		size_t plain = strcspn(fmt, "%");
		bool quoted = plain > 0 && fmt[plain - 1] == '"';

		buf_add(out, fmt, plain);
		fmt += plain;
		if (*fmt == '\0')
			break;
		if (strncmp(fmt, "%s", 2) == 0 ||
		    strncmp(fmt, "%.*s", 4) == 0) {
			bool counted = fmt[1] == '.';
			size_t len = counted ? (size_t)va_arg(ap, int) : 0;
			const char *text = va_arg(ap, const char *);

			len = counted ? len : strlen(text);
			if (quoted)
				jtext_add_text(out, text, len, style);
			else
				buf_add(out, text, len);
			fmt += counted ? 4 : 2;
		} else {
			assert(strncmp(fmt, wide, strlen(wide)) == 0);
			buf_addf(out, wide, va_arg(ap, int64_t));
			fmt += strlen(wide);
		}
	}
	va_end(ap);
}
