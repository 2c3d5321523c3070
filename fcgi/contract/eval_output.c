/* SPDX-License-Identifier: MIT */
#include "eval_output.h"

#include <string.h>

#include "../../sandbox/base/utf8.h"

#define PIECE 10000
#define SIZE_MAX_COUNTED 1000000
#define TEXT_MAX ((size_t)4 << 20) /* more than any counted size can be */

void
eval_output_init(struct eval_output *out)
{
	*out = (struct eval_output){ .text = BUF_INIT(TEXT_MAX) };
}

void
eval_output_release(struct eval_output *out)
{
	buf_release(&out->text);
}

/* A piece is full, or the output has ended.  Its size is that of a str by
 * sys.getsizeof(). */
static void
end_piece(struct eval_output *out)
{
	static const size_t heads[] = { 49, 49, 73, 74, 76 };
	static const size_t widths[] = { 1, 1, 1, 2, 4 };

	out->total += heads[out->widest] +
	    widths[out->widest] * out->characters;
	out->characters = 0;
	out->widest = 0;
	if (out->total > SIZE_MAX_COUNTED && out->state == EVAL_OUTPUT_OPEN)
		out->state = EVAL_OUTPUT_FULL;
}

/* One character. */
static void
put(struct eval_output *out, const char *s, size_t step)
{
	unsigned width = (unsigned)step;
	bool joined = out->after_return && *s == '\n';

	out->after_return = *s == '\r';
	if (joined)
		return;
	if (*s == '\r')
		buf_addc(&out->text, '\n');
	else
		buf_add(&out->text, s, step);
	if (step == 2 && (unsigned char)s[0] > 0xc3)
		width = 3; /* above U+00FF */
	if (width > out->widest)
		out->widest = width;
	if (++out->characters == PIECE)
		end_piece(out);
}

bool
eval_output_add(struct eval_output *out, const void *data, size_t len)
{
	auto_buf struct buf joined = BUF_INIT(sizeof(out->pending) + len);
	const char *s = data;

	if (out->pending_count > 0) {
		buf_add(&joined, out->pending, out->pending_count);
		buf_add(&joined, data, len);
		s = joined.data;
		len = joined.len;
		out->pending_count = 0;
	}
	while (len > 0 && out->state == EVAL_OUTPUT_OPEN) {
		enum utf8_fault fault;
		size_t step = utf8_look(s, len, false, &fault);

		if (fault == UTF8_END) {
			memcpy(out->pending, s, len);
			out->pending_count = len;
			break;
		}
		if (fault == UTF8_FINE)
			put(out, s, step);
		else
			out->state = EVAL_OUTPUT_INVALID;
		s += step;
		len -= step;
	}
	return out->state == EVAL_OUTPUT_OPEN;
}

void
eval_output_end(struct eval_output *out)
{
	if (out->state != EVAL_OUTPUT_OPEN)
		return;
	if (out->pending_count > 0)
		out->state = EVAL_OUTPUT_INVALID;
	else
		end_piece(out);
}
