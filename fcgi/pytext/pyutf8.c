/* SPDX-License-Identifier: MIT */
#include "pytext/pyutf8.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* One byte is told by its value, several by where they are. */
void
pyutf8_explain(struct buf *out, const char *s, size_t len, size_t at)
{
	static const char *const why[] = {
		[UTF8_FINE] = "",
		[UTF8_START] = "invalid start byte",
		[UTF8_CONTINUATION] = "invalid continuation byte",
		[UTF8_END] = "unexpected end of data",
	};
	enum utf8_fault fault;
	size_t step = utf8_look(s + at, len - at, false, &fault);

	buf_adds(out, "'utf-8' codec can't decode byte");
	if (step == 1)
		buf_addf(out, " 0x%02x in position %zu",
		    (unsigned)(unsigned char)s[at], at);
	else
		buf_addf(out, "s in position %zu-%zu", at, at + step - 1);
	buf_addf(out, ": %s", why[fault]);
}

/* They are ED A0 80 to ED BF BF, and ED A0 begins nothing else. */
bool
pyutf8_has_surrogate(const char *s, size_t len)
{
	const char *end = s + len;

	while ((s = memchr(s, 0xed, (size_t)(end - s))) != NULL) {
		if (end - s >= 2 && (unsigned char)s[1] >= 0xa0)
			return true;
		s++;
	}
	return false;
}

/* What may be the beginning of a character waits for the next piece. */
void
pyutf8_add(struct pyutf8 *d, struct buf *out, const char *data, size_t len)
{
	auto_buf struct buf joined = BUF_INIT(sizeof(d->pending) + len);
	enum utf8_fault fault;
	size_t step;

	if (d->count > 0) {
		buf_add(&joined, d->pending, d->count);
		buf_add(&joined, data, len);
		data = joined.data;
		len = joined.len;
		d->count = 0;
	}
	while (len > 0) {
		step = utf8_span(data, len, false);
		buf_add(out, data, step);
		data += step;
		len -= step;
		if (len == 0)
			break;
		step = utf8_look(data, len, false, &fault);
		if (fault == UTF8_END) {
			memcpy(d->pending, data, len);
			d->count = len;
			break;
		}
		d->failed = d->strict;
		if (d->failed)
			break;
		buf_adds(out, REPLACEMENT);
		data += step;
		len -= step;
	}
}

void
pyutf8_end(struct pyutf8 *d, struct buf *out)
{
	if (d->count > 0)
		buf_adds(out, REPLACEMENT);
	d->count = 0;
}

void
pyutf8_add_whole(struct buf *out, const char *data, size_t len)
{
	struct pyutf8 decoder = { .count = 0 };

	pyutf8_add(&decoder, out, data, len);
	pyutf8_end(&decoder, out);
}
