/* SPDX-License-Identifier: MIT */
#include "pyrepr.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pyjson_tree.h"
#include "pyutf8.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/utf8.h"

struct range {
	uint32_t first;
	uint32_t last;
};

static const struct range printable[] = {
#include "pyprintable.inc"
};

/* For bsearch(): is the code point before, in or after the range? */
static int
compare_range(const void *key, const void *entry)
{
	uint32_t code = *(const uint32_t *)key;
	const struct range *range = entry;

	return code < range->first ? -1 : code > range->last;
}

bool
pyrepr_is_printable(uint32_t code)
{
	return bsearch(&code, printable,
		   sizeof(printable) / sizeof(printable[0]),
		   sizeof(printable[0]), compare_range) != NULL;
}

/* A code point that cannot be shown. */
static void
add_escape(struct buf *out, uint32_t code)
{
	if (code == '\n')
		buf_adds(out, "\\n");
	else if (code == '\r')
		buf_adds(out, "\\r");
	else if (code == '\t')
		buf_adds(out, "\\t");
	else if (code < 0x100)
		buf_addf(out, "\\x%02x", code);
	else if (code < 0x10000)
		buf_addf(out, "\\u%04x", code);
	else
		buf_addf(out, "\\U%08x", code);
}

/* Python takes double quotes where that saves an escape. */
void
pyrepr_add_string(struct buf *out, const char *s, size_t len)
{
	bool single = memchr(s, '\'', len) != NULL;
	char quote = single && memchr(s, '"', len) == NULL ? '"' : '\'';

	buf_addc(out, quote);
	for (size_t i = 0; i < len && !out->overflow;) {
		enum utf8_fault fault;
		size_t step = utf8_look(s + i, len - i, true, &fault);
		uint32_t code = pyutf8_decode(s + i, step);

		if (s[i] == quote || s[i] == '\\') {
			buf_addc(out, '\\');
			buf_addc(out, s[i]);
		} else if (pyrepr_is_printable(code)) {
			buf_add(out, s + i, step);
		} else {
			add_escape(out, code);
		}
		i += step;
	}
	buf_addc(out, quote);
}

/* Lay out digits d1 d2 … that stand for 0.d1d2… × 10^point. */
static void
add_digits(struct buf *out, const char *digits, int point)
{
	int count = (int)strlen(digits);

	if (point > 16 || point < -3) {
		buf_addc(out, digits[0]);
		if (count > 1)
			buf_addf(out, ".%s", digits + 1);
		buf_addf(out, "e%c%02d", point > 0 ? '+' : '-', abs(point - 1));
	} else if (point <= 0) {
		buf_addf(out, "0.%.*s%s", -point, "000", digits);
	} else if (point >= count) {
		buf_addf(out, "%s%.*s.0", digits, point - count,
		    "0000000000000000");
	} else {
		buf_addf(out, "%.*s.%s", point, digits, digits + point);
	}
}

/* Tries with ever more digits until the number comes back. */
void
pyrepr_add_float(struct buf *out, double real)
{
	char text[40];
	char digits[20] = "";
	size_t count = 0;

	if (isnan(real) || isinf(real)) {
		buf_adds(out, isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
		return;
	}
	for (int precision = 0; precision < 17; precision++) {
		(void)snprintf(text, sizeof(text), "%.*e", precision,
		    fabs(real));
		if (strtod(text, NULL) == fabs(real))
			break;
	}
	for (const char *p = text; *p != 'e'; p++)
		if (*p != '.')
			digits[count++] = *p;
	while (count > 1 && digits[count - 1] == '0')
		count--;
	digits[count] = '\0';
	if (signbit(real))
		buf_addc(out, '-');
	add_digits(out, digits,
	    real == 0 ? 1 : (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1);
}

/* The items of an array, or the members of an object. */
static void
add_parts(struct buf *out, const struct pyvalue *whole,
    const struct pyrepr_style *style)
{
	bool object = whole->type == PYVALUE_OBJECT;

	buf_addc(out, object ? '{' : '[');
	for (size_t i = 0; i < whole->count && !out->overflow; i++) {
		if (i > 0)
			buf_adds(out, style->comma);
		if (object) {
			const struct pymember *member = &whole->u.members[i];

			style->add_string(out, member->name, member->len);
			buf_adds(out, style->colon);
			pyrepr_add_as(out, &member->value, style);
		} else {
			pyrepr_add_as(out, &whole->u.items[i], style);
		}
	}
	buf_addc(out, object ? '}' : ']');
}

void
pyrepr_add_as(struct buf *out, const struct pyvalue *value,
    const struct pyrepr_style *style)
{
	switch (value->type) {
	case PYVALUE_NULL:
		buf_adds(out, style->null);
		break;
	case PYVALUE_BOOL:
		buf_adds(out, style->truth[value->u.truth]);
		break;
	case PYVALUE_INT:
		buf_addf(out, "%" PRId64, value->u.integer);
		break;
	case PYVALUE_BIG:
		buf_add(out, value->u.text, value->count);
		break;
	case PYVALUE_FLOAT:
		if (style->not_finite != NULL && !isfinite(value->u.real))
			buf_adds(out, style->not_finite);
		else
			pyrepr_add_float(out, value->u.real);
		break;
	case PYVALUE_STRING:
		style->add_string(out, value->u.text, value->count);
		break;
	case PYVALUE_ARRAY:
	case PYVALUE_OBJECT:
		add_parts(out, value, style);
		break;
	}
}

void
pyrepr_add(struct buf *out, const struct pyvalue *value)
{
	static const struct pyrepr_style style = {
		.null = "None",
		.truth = { "False", "True" },
		.comma = ", ",
		.colon = ": ",
		.add_string = pyrepr_add_string,
	};

	pyrepr_add_as(out, value, &style);
}
