/* SPDX-License-Identifier: MIT */
#include "sse.h"

#include "execute_answer.h"
#include "../pytext/pydump.h"

#include "../../sandbox/base/buf.h"

void
sse_stream_init(struct sse_stream *s, const char *name, size_t max)
{
	*s = (struct sse_stream){ .name = name, .left = max };
}

/* No frame for no text. */
static void
add_frame(struct buf *out, const struct sse_stream *s, const struct buf *text)
{
	if (text->len == 0)
		return;
	buf_addf(out,
	    "event: output\ndata: {\"stream\":\"%s\",\"data\":", s->name);
	pydump_add_string(out, buf_str(text), text->len, PYDUMP_ASCII);
	buf_adds(out, "}\n\n");
}

void
sse_add_output(struct buf *out, struct sse_stream *s, const void *data,
    size_t len)
{
	auto_buf struct buf text = BUF_INIT(3 * (len + 1));

	if (len > s->left)
		len = s->left;
	s->left -= len;
	pyutf8_add(&s->decoder, &text, data, len);
	add_frame(out, s, &text);
}

void
sse_add_rest(struct buf *out, struct sse_stream *s)
{
	auto_buf struct buf text = BUF_INIT(8);

	pyutf8_end(&s->decoder, &text);
	add_frame(out, s, &text);
}

void
sse_add_result(struct buf *out, const struct execute_result *result)
{
	buf_adds(out, "event: result\ndata: ");
	execute_add_end(out, result, true);
	buf_adds(out, "\n\n");
}

void
sse_add_error(struct buf *out, const char *text)
{
	pydump_addf(out, PYDUMP_ASCII,
	    "event: error\ndata: {\"message\":\"%s\"}\n\n", text);
}
