/* SPDX-License-Identifier: MIT */
#include "contract/jtext.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "contract/utf8_decoder.h"

#include "base/buf.h"
#include "base/utf8.h"

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* ---- strings ---- */

static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Sets the highest bit of the first byte that is less than n, which is 0x80 at
 * most, and no bit before it. */
static uint64_t
mark_less(uint64_t word, unsigned char n)
{
	return (word - EACH(n)) & ~word & EACH(0x80);
}

/* Bytes of s before the first that does not stand for itself in a JSON string:
 * a control character (DEL is one), '"', '\\', or what is not ASCII.  Eight
 * bytes are compared at a time; two are equal if their XOR is less than 1. */
static size_t
plain_span(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t word;
	uint64_t found;

	for (; len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		word = le64toh(word); /* the first byte is the lowest */
		found = (word & EACH(0x80)) | mark_less(word, 0x20) |
		    mark_less(word ^ EACH('"'), 1) |
		    mark_less(word ^ EACH('\\'), 1) |
		    mark_less(word ^ EACH(0x7f), 1);
		if (found != 0)
			return i + (size_t)__builtin_ctzll(found) / 8;
	}
	while (i < len && is_plain((unsigned char)s[i]))
		i++;
	return i;
}

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
	uint32_t code;
	size_t step;

	if (escape[1] != '\0') {
		buf_add(out, escape, sizeof(escape));
		return 1;
	}
	step = utf8_look(s, len, &fault);
	code = fault == UTF8_FINE ? utf8_decode(s, step) : 0xfffd;
	if (style == JTEXT_UTF8 && code >= 0x7f) {
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
		size_t plain = plain_span(s + i, len - i);

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

json_t *
jtext_pack(const char *s, size_t len)
{
	auto_buf struct buf text = BUF_INIT(3 * len);

	utf8_decoder_add_whole(&text, s, len);
	return json_stringn(buf_str(&text), text.len);
}

/* A value that does not fit is written no further. */
static int
jtext_write(const char *data, size_t len, void *arg)
{
	struct buf *out = arg;

	buf_add(out, data, len);
	return out->overflow ? -1 : 0;
}

void
jtext_add(struct buf *out, const json_t *value, size_t flags)
{
	(void)json_dump_callback(value, jtext_write, out,
	    flags | JSON_ENCODE_ANY);
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
