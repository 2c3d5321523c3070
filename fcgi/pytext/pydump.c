#include "pydump.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "pyjson.h"
#include "pyrepr.h"
#include "pyutf8.h"

#include "../../sandbox/base/buf.h"

static void
add_unit(struct buf *out, uint32_t unit)
{
	buf_addf(out, "\\u%04x", unit);
}

static void
add_control(struct buf *out, char c)
{
	static const char plain[] = "\"\\\n\r\t\f\b";
	static const char marks[] = "\"\\nrtfb";
	const char *found = c == '\0' ? NULL : strchr(plain, c);

	if (found == NULL) {
		add_unit(out, (unsigned char)c);
	} else {
		buf_addc(out, '\\');
		buf_addc(out, marks[found - plain]);
	}
}

static void
add_code(struct buf *out, uint32_t code)
{
	if (code < 0x10000) {
		add_unit(out, code);
		return;
	}
	add_unit(out, 0xd800 + ((code - 0x10000) >> 10));
	add_unit(out, 0xdc00 + (code & 0x3ff));
}

static bool
is_plain(char c, enum pydump_style style)
{
	unsigned char u = (unsigned char)c;

	return u >= 0x20 && u != '"' && u != '\\' && u < 0x80 &&
	    (u != 0x7f || style == PYDUMP_UTF8);
}

/* Append what the one or more bytes at s become; how many they were. */
static size_t
add_step(struct buf *out, const char *s, size_t len, enum pydump_style style)
{
	enum pyutf8_fault fault;
	size_t step = pyutf8_step(s, len, true, &fault);
	uint32_t code;

	if (step == 1 && fault == PYUTF8_FINE) {
		add_control(out, *s);
		return 1;
	}
	code = fault == PYUTF8_FINE ? pyutf8_decode(s, step) : 0xfffd;
	if (style == PYDUMP_ASCII || (code >= 0xd800 && code <= 0xdfff))
		add_code(out, code);
	else if (fault == PYUTF8_FINE)
		buf_add(out, s, step);
	else
		buf_adds(out, "\xef\xbf\xbd");
	return step;
}

void
pydump_add_text(struct buf *out, const char *s, size_t len,
    enum pydump_style style)
{
	size_t i = 0;

	while (i < len && !out->overflow) {
		size_t start = i;

		while (i < len && is_plain(s[i], style))
			i++;
		buf_add(out, s + start, i - start);
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

static void
add_array(struct buf *out, const struct pyvalue *array)
{
	buf_addc(out, '[');
	for (size_t i = 0; i < array->count && !out->overflow; i++) {
		if (i > 0)
			buf_addc(out, ',');
		pydump_add(out, &array->u.items[i]);
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
			buf_addc(out, ',');
		pydump_add_string(out, member->name, member->len, PYDUMP_UTF8);
		buf_addc(out, ':');
		pydump_add(out, &member->value);
	}
	buf_addc(out, '}');
}

void
pydump_add(struct buf *out, const struct pyvalue *value)
{
	switch (value->type) {
	case PYVALUE_NULL:
		buf_adds(out, "null");
		break;
	case PYVALUE_BOOL:
		buf_adds(out, value->u.truth ? "true" : "false");
		break;
	case PYVALUE_INT:
		buf_addf(out, "%" PRId64, value->u.integer);
		break;
	case PYVALUE_BIG:
		buf_add(out, value->u.text, value->count);
		break;
	case PYVALUE_FLOAT:
		if (isfinite(value->u.real))
			pyrepr_add_float(out, value->u.real);
		else
			buf_adds(out, "null");
		break;
	case PYVALUE_STRING:
		pydump_add_string(out, value->u.text, value->count,
		    PYDUMP_UTF8);
		break;
	case PYVALUE_ARRAY:
		add_array(out, value);
		break;
	case PYVALUE_OBJECT:
		add_object(out, value);
		break;
	}
}
