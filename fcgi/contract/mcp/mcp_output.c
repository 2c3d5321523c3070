/* SPDX-License-Identifier: MIT */
#include "mcp_output.h"

#include <inttypes.h>
#include <string.h>

#include "../../pytext/pyutf8.h"

#include "../../../sandbox/base/utf8.h"

/* Keep the last MCP_TAIL_BYTES of the end, and what came since. */
static void
add_tail(struct buf *tail, const char *data, size_t len)
{
	if (len >= MCP_TAIL_BYTES) {
		buf_reset(tail);
		data += len - MCP_TAIL_BYTES;
		len = MCP_TAIL_BYTES;
	}
	if (tail->len + len > tail->max)
		buf_drop(tail, tail->len - MCP_TAIL_BYTES);
	buf_add(tail, data, len);
}

void
mcp_output_add(struct mcp_output *o, const void *data, size_t len)
{
	size_t room = MCP_HEAD_BYTES - o->head.len;
	size_t head = len < room ? len : room;

	o->total += (int64_t)len;
	buf_add(&o->head, data, head);
	if (len > head)
		add_tail(&o->tail, (const char *)data + head, len - head);
}

void
mcp_output_release(struct mcp_output *o)
{
	buf_release(&o->head);
	buf_release(&o->tail);
}

bool
mcp_output_is_cut(const struct mcp_output *o)
{
	return o->total > MCP_HEAD_BYTES + MCP_TAIL_BYTES;
}

/* Without the beginning of a character at its end. */
static size_t
whole_len(const char *s, size_t len)
{
	size_t back = 0;

	while (back < 3 && back < len && utf8_is_tail(s[len - 1 - back]))
		back++;
	if (back < len && (unsigned char)s[len - 1 - back] >= 0xc0 &&
	    utf8_step(s + len - 1 - back, back + 1) == 0)
		return len - 1 - back;
	return len;
}

void
mcp_output_text(struct buf *out, const struct mcp_output *o)
{
	auto_buf struct buf all = BUF_INIT(o->head.len + o->tail.len);
	const char *tail = buf_str(&o->tail);
	size_t tail_len = o->tail.len;
	size_t head_len;

	if (!mcp_output_is_cut(o)) {
		buf_add(&all, buf_str(&o->head), o->head.len);
		buf_add(&all, tail, tail_len);
		pyutf8_add_whole(out, buf_str(&all), all.len);
		return;
	}
	head_len = whole_len(buf_str(&o->head), o->head.len);
	tail += tail_len - MCP_TAIL_BYTES;
	tail_len = MCP_TAIL_BYTES;
	for (int i = 0; i < 3 && utf8_is_tail(*tail); i++) {
		tail++;
		tail_len--;
	}
	pyutf8_add_whole(out, buf_str(&o->head), head_len);
	buf_addf(out, "\n[... %" PRId64 " bytes are left out here ...]\n",
	    o->total - (int64_t)head_len - (int64_t)tail_len);
	pyutf8_add_whole(out, tail, tail_len);
}

void
mcp_output_last_line(struct buf *out, const struct mcp_output *o, size_t max)
{
	const struct buf *last = o->tail.len > 0 ? &o->tail : &o->head;
	const char *s = buf_str(last);
	size_t end = last->len;
	size_t start;

	while (end > 0 && (s[end - 1] == '\n' || s[end - 1] == '\r'))
		end--;
	start = end;
	while (start > 0 && s[start - 1] != '\n' && s[start - 1] != '\r')
		start--;
	end = end - start > max ? start + max : end;
	pyutf8_add_whole(out, s + start, whole_len(s + start, end - start));
}
