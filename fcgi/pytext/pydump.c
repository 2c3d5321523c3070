/* SPDX-License-Identifier: MIT */
#include "pydump.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "pyrepr.h"
#include "pyutf8.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/utf8.h"

/* One UTF-16 code unit. */
static void
add_unit(struct buf *out, uint32_t unit)
{
	buf_addf(out, "\\u%04x", unit);
}

/* A quote, a backslash or a control character. */
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

/* A character that stands for itself. */
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
	enum utf8_fault fault;
	size_t step = utf8_look(s, len, true, &fault);
	uint32_t code;

	if (step == 1 && fault == UTF8_FINE) {
		add_control(out, *s);
		return 1;
	}
	code = fault == UTF8_FINE ? pyutf8_decode(s, step) : 0xfffd;
	if (style == PYDUMP_UTF8 && (code < 0xd800 || code > 0xdfff)) {
		if (fault == UTF8_FINE)
			buf_add(out, s, step);
		else
			buf_adds(out, "\xef\xbf\xbd");
	} else if (code < 0x10000) {
		add_unit(out, code);
	} else {
		add_unit(out, 0xd800 + ((code - 0x10000) >> 10));
		add_unit(out, 0xdc00 + (code & 0x3ff));
	}
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

/* For pyrepr_add_as(), which knows no style. */
static void
add_string(struct buf *out, const char *s, size_t len)
{
	pydump_add_string(out, s, len, PYDUMP_UTF8);
}

void
pydump_add(struct buf *out, const struct pyvalue *value)
{
	static const struct pyrepr_style style = {
		.null = "null",
		.truth = { "false", "true" },
		.comma = ",",
		.colon = ":",
		.not_finite = "null",
		.add_string = add_string,
	};

	pyrepr_add_as(out, value, &style);
}

/* One conversion of a form; how long it was. */
static size_t
add_conversion(struct buf *out, enum pydump_style style, const char *fmt,
    bool quoted, va_list *ap)
{
	static const char wide[] = "%" PRId64;
	const char *text;

	if (strncmp(fmt, wide, strlen(wide)) == 0) {
		buf_addf(out, wide, va_arg(*ap, int64_t));
		return strlen(wide);
	}
	if (strncmp(fmt, "%zu", 3) == 0) {
		buf_addf(out, "%zu", va_arg(*ap, size_t));
		return 3;
	}
	if (fmt[1] == 'd') {
		buf_addf(out, "%d", va_arg(*ap, int));
		return 2;
	}
	if (fmt[1] == 'g') {
		pyrepr_add_float(out, va_arg(*ap, double));
		return 2;
	}
	assert(fmt[1] == 's');
	text = va_arg(*ap, const char *);
	if (quoted)
		pydump_add_text(out, text, strlen(text), style);
	else
		buf_adds(out, text);
	return 2;
}

void
pydump_addf(struct buf *out, enum pydump_style style, const char *fmt, ...)
{
	bool quoted = false;
	va_list ap;

	va_start(ap, fmt);
	while (*fmt != '\0') {
		size_t plain = strcspn(fmt, "%");

		buf_add(out, fmt, plain);
		quoted = plain > 0 && fmt[plain - 1] == '"';
		fmt += plain;
		if (*fmt == '%')
			fmt += add_conversion(out, style, fmt, quoted, &ap);
	}
	va_end(ap);
}
