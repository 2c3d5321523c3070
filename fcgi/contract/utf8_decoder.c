/* SPDX-License-Identifier: MIT */
#include "contract/utf8_decoder.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Bytes that may begin a character wait for the next piece. */
void
utf8_decoder_add(struct utf8_decoder *d, struct buf *out, const char *data,
    size_t len)
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
		step = utf8_span(data, len);
		buf_add(out, data, step);
		data += step;
		len -= step;
		if (len == 0)
			break;
		step = utf8_look(data, len, &fault);
		if (fault == UTF8_END) {
			memcpy(d->pending, data, len);
			d->count = len;
			break;
		}
		buf_adds(out, REPLACEMENT);
		data += step;
		len -= step;
	}
}

void
utf8_decoder_end(struct utf8_decoder *d, struct buf *out)
{
	if (d->count > 0)
		buf_adds(out, REPLACEMENT);
	d->count = 0;
}

void
utf8_decoder_add_whole(struct buf *out, const char *data, size_t len)
{
	struct utf8_decoder decoder = { .count = 0 };

	utf8_decoder_add(&decoder, out, data, len);
	utf8_decoder_end(&decoder, out);
}
