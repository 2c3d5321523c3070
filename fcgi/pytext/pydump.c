/* SPDX-License-Identifier: MIT */
#include "pytext/pydump.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pytext/pyjson.h"

#include "base/buf.h"
#include "base/utf8.h"

/* ---- strings ---- */

/* By hand, as there may be a million of them. */
static void
add_unit(struct buf *out, uint32_t unit)
{
	static const char hex[] = "0123456789abcdef";
	const char text[] = { '\\', 'u', hex[unit >> 12 & 15],
		hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15] };

	buf_add(out, text, sizeof(text));
}

/* Append what the one or more bytes at s become; how many they were. */
static size_t
add_step(struct buf *out, const char *s, size_t len, enum pydump_style style)
{
	/* what has a letter of its own */
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
	step = utf8_look(s, len, style != PYDUMP_CLEAN, &fault);
	code = fault == UTF8_FINE ? utf8_decode(s, step) : 0xfffd;
	surrogate = code >= 0xd800 && code <= 0xdfff;
	if (style != PYDUMP_ASCII && code >= 0x7f && !surrogate) {
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
pydump_add_text(struct buf *out, const char *s, size_t len,
    enum pydump_style style)
{
	size_t i = 0;

	while (i < len && !out->overflow) {
		size_t plain = pyplain_span(s + i, len - i);

		buf_add(out, s + i, plain);
		i += plain;
		if (i < len)
			i += add_step(out, s + i, len - i, style);
	}
}

void
pydump_add_string(struct buf *out, const char *s, size_t len,
    enum pydump_style style)
{
	buf_addc(out, '"');
	pydump_add_text(out, s, len, style);
	buf_addc(out, '"');
}

struct range {
	uint32_t first;
	uint32_t last;
};

static const struct range printable[] = {
#include "pytext/pyprintable.inc"
};

/* For bsearch(): is the code point before, in or after the range? */
static int
compare_range(const void *key, const void *entry)
{
	uint32_t code = *(const uint32_t *)key;
	const struct range *range = entry;

	return code < range->first ? -1 : code > range->last;
}

/* The table holds ranges in their order. */
bool
pydump_is_printable(uint32_t code)
{
	return bsearch(&code, printable,
		   sizeof(printable) / sizeof(printable[0]),
		   sizeof(printable[0]), compare_range) != NULL;
}

/* A string by repr(): Python takes double quotes where that saves an escape. */
static void
add_repr_string(struct buf *out, const char *s, size_t len)
{
	bool single = memchr(s, '\'', len) != NULL;
	char quote = single && memchr(s, '"', len) == NULL ? '"' : '\'';

	buf_addc(out, quote);
	for (size_t i = 0; i < len && !out->overflow;) {
		enum utf8_fault fault;
		size_t step = utf8_look(s + i, len - i, true, &fault);
		uint32_t code = utf8_decode(s + i, step);

		if (code == (unsigned char)quote || code == '\\')
			buf_addf(out, "\\%c", s[i]);
		else if (pydump_is_printable(code))
			buf_add(out, s + i, step);
		else if (code == '\n' || code == '\r' || code == '\t')
			buf_adds(out,
			    code == '\n'     ? "\\n" :
				code == '\r' ? "\\r" :
					       "\\t");
		else
			buf_addf(out,
			    code < 0x100       ? "\\x%02x" :
				code < 0x10000 ? "\\u%04x" :
						 "\\U%08x",
			    code);
		i += step;
	}
	buf_addc(out, quote);
}

/* ---- numbers and values ---- */

/* The fewest digits that give the same number back. */
static void
add_float(struct buf *out, double real)
{
	char text[40];
	int places = 0;
	int exponent;

	if (!isfinite(real)) {
		buf_adds(out, isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
		return;
	}
	do
		(void)snprintf(text, sizeof(text), "%.*e", places, real);
	while (strtod(text, NULL) != real && ++places < 17);
	exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	if (exponent < -4 || exponent > 15)
		buf_adds(out, text);
	else
		buf_addf(out, "%.*f", places > exponent ? places - exponent : 1,
		    real);
}

/* repr() and JSON differ in these words alone, and in their strings. */
struct words {
	bool json;
	const char *null;
	const char *truth[2]; /* false, true */
	const char *comma;
	const char *colon;
};

/* A string, or the name of a member. */
static void
add_string(struct buf *out, const char *s, size_t len,
    const struct words *words)
{
	if (words->json)
		pydump_add_string(out, s, len, PYDUMP_UTF8);
	else
		add_repr_string(out, s, len);
}

static void add_value(struct buf *out, const struct pyvalue *value,
    const struct words *words);

/* The items of an array, or the members of an object. */
static void
add_parts(struct buf *out, const struct pyvalue *whole,
    const struct words *words)
{
	bool object = whole->type == PYVALUE_OBJECT;
	const struct pyvalue *part = whole->u.parts.first;

	buf_addc(out, object ? '{' : '[');
	for (; part != NULL && !out->overflow; part = part->next) {
		if (part->prev != NULL)
			buf_adds(out, words->comma);
		if (object) {
			add_string(out, part->name, part->name_len, words);
			buf_adds(out, words->colon);
		}
		add_value(out, part, words);
	}
	buf_addc(out, object ? '}' : ']');
}

/* Calls itself for parts, whose depth pyjson.h bounds. */
static void
add_value(struct buf *out, const struct pyvalue *value,
    const struct words *words)
{
	switch (value->type) {
	case PYVALUE_NULL:
		buf_adds(out, words->null);
		break;
	case PYVALUE_BOOL:
		buf_adds(out, words->truth[value->u.truth]);
		break;
	case PYVALUE_INT:
		buf_addf(out, "%" PRId64, value->u.integer);
		break;
	case PYVALUE_BIG:
		buf_add(out, value->u.text, value->count);
		break;
	case PYVALUE_FLOAT:
		if (words->json && !isfinite(value->u.real))
			buf_adds(out, words->null);
		else
			add_float(out, value->u.real);
		break;
	case PYVALUE_STRING:
		add_string(out, value->u.text, value->count, words);
		break;
	case PYVALUE_ARRAY:
	case PYVALUE_OBJECT:
		add_parts(out, value, words);
		break;
	}
}

void
pydump_add(struct buf *out, const struct pyvalue *value)
{
	static const struct words json = { true, "null", { "false", "true" },
		",", ":" };

	add_value(out, value, &json);
}

void
pydump_add_repr(struct buf *out, const struct pyvalue *value)
{
	static const struct words repr = { false, "None", { "False", "True" },
		", ", ": " };

	add_value(out, value, &repr);
}

/* Up to each conversion what stands there is added as it is. */
void
pydump_addf(struct buf *out, enum pydump_style style, const char *fmt, ...)
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
				pydump_add_text(out, text, len, style);
			else
				buf_add(out, text, len);
			fmt += counted ? 4 : 2;
		} else if (strncmp(fmt, "%g", 2) == 0) {
			add_float(out, va_arg(ap, double));
			fmt += 2;
		} else {
			assert(strncmp(fmt, wide, strlen(wide)) == 0);
			buf_addf(out, wide, va_arg(ap, int64_t));
			fmt += strlen(wide);
		}
	}
	va_end(ap);
}
