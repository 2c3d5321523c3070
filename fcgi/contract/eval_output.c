/* SPDX-License-Identifier: MIT */
#include "eval_output.h"

#include <string.h>

#include "../../sandbox/base/utf8.h"

#define PIECE 10000
#define SIZE_MAX_COUNTED 1000000
#define TEXT_MAX ((size_t)4 << 20) /* more than any counted size can be */

/* sys.getsizeof() of a str of so many characters. */
static size_t
size_of(size_t characters, unsigned widest)
{
	switch (widest) {
	case 2:
		return 73 + characters;
	case 3:
		return 74 + 2 * characters;
	case 4:
		return 76 + 4 * characters;
	default:
		return 49 + characters;
	}
}

void
eval_output_init(struct eval_output *out)
{
	memset(out, 0, sizeof(*out));
	buf_init(&out->text, TEXT_MAX);
}

void
eval_output_release(struct eval_output *out)
{
	buf_release(&out->text);
}

/* A piece is full, or the output has ended. */
static void
end_piece(struct eval_output *out)
{
	out->total += size_of(out->characters, out->widest);
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

/* Take what starts at s; how many bytes that were.  0: nothing, more has to
 * come first. */
static size_t
take(struct eval_output *out, const char *s, size_t len)
{
	enum utf8_fault fault;
	size_t step = utf8_look(s, len, false, &fault);

	if (fault == UTF8_END)
		return 0;
	if (fault == UTF8_FINE)
		put(out, s, step);
	else
		out->state = EVAL_OUTPUT_INVALID;
	return step;
}

bool
eval_output_add(struct eval_output *out, const void *data, size_t len)
{
	const char *s = data;

	while (len > 0 && out->pending_count > 0 &&
	    out->state == EVAL_OUTPUT_OPEN) {
		out->pending[out->pending_count++] = *s++;
		len--;
		if (take(out, out->pending, out->pending_count) > 0)
			out->pending_count = 0;
	}
	while (len > 0 && out->state == EVAL_OUTPUT_OPEN) {
		size_t step = take(out, s, len);

		if (step == 0) {
			memcpy(out->pending, s, len);
			out->pending_count = len;
			break;
		}
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
