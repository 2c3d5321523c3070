#include "pyrepr.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <inttypes.h>

#include "pyjson.h"
#include "pyutf8.h"

#include "../../sandbox/base/buf.h"

bool
pyrepr_is_printable(uint32_t code)
{
	size_t low = 0;
	size_t high = pyprintable_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (code < pyprintable[middle][0])
			high = middle;
		else if (code > pyprintable[middle][1])
			low = middle + 1;
		else
			return true;
	}
	return false;
}

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

void
pyrepr_add_string(struct buf *out, const char *s, size_t len)
{
	bool single = memchr(s, '\'', len) != NULL;
	char quote = single && memchr(s, '"', len) == NULL ? '"' : '\'';

	buf_addc(out, quote);
	for (size_t i = 0; i < len && !out->overflow;) {
		enum pyutf8_fault fault;
		size_t step = pyutf8_step(s + i, len - i, true, &fault);
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

static void
add_array(struct buf *out, const struct pyvalue *array)
{
	buf_addc(out, '[');
	for (size_t i = 0; i < array->count && !out->overflow; i++) {
		if (i > 0)
			buf_adds(out, ", ");
		pyrepr_add(out, &array->u.items[i]);
	}
	buf_addc(out, ']');
}

static void
add_object(struct buf *out, const struct pyvalue *object)
{
	buf_addc(out, '{');
	for (size_t i = 0; i < object->count && !out->overflow; i++) {
		const struct pymember *member = &object->u.members[i];

		if (i > 0)
			buf_adds(out, ", ");
		pyrepr_add_string(out, member->name, member->len);
		buf_adds(out, ": ");
		pyrepr_add(out, &member->value);
	}
	buf_addc(out, '}');
}

void
pyrepr_add(struct buf *out, const struct pyvalue *value)
{
	switch (value->type) {
	case PYVALUE_NULL:
		buf_adds(out, "None");
		break;
	case PYVALUE_BOOL:
		buf_adds(out, value->u.truth ? "True" : "False");
		break;
	case PYVALUE_INT:
		buf_addf(out, "%" PRId64, value->u.integer);
		break;
	case PYVALUE_BIG:
		buf_add(out, value->u.text, value->count);
		break;
	case PYVALUE_FLOAT:
		pyrepr_add_float(out, value->u.real);
		break;
	case PYVALUE_STRING:
		pyrepr_add_string(out, value->u.text, value->count);
		break;
	case PYVALUE_ARRAY:
		add_array(out, value);
		break;
	case PYVALUE_OBJECT:
		add_object(out, value);
		break;
	}
}
