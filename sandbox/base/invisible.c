/* SPDX-License-Identifier: MIT */
#include "invisible.h"

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "utf8.h"

#define SOFT_HYPHEN 0xad  /* the first that is not seen */
#define TEXT_STYLE 0xfe0e /* the variation selectors of pictographs */
#define EMOJI_STYLE 0xfe0f
#define NON_JOINER 0x200c
#define JOINER 0x200d
#define KEYCAP 0x20e3 /* the frame around a digit */

/* Unicode 15's Default_Ignorable_Code_Point, the separators of lines and
 * paragraphs, and the marks of annotations. */
static bool
is_unseen(uint32_t code)
{
	static const struct {
		uint32_t first;
		uint32_t last;
	} ranges[] = {
		{ SOFT_HYPHEN, SOFT_HYPHEN },
		{ 0x34f, 0x34f },
		{ 0x61c, 0x61c },
		{ 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f },
		{ 0x200b, 0x200f },
		{ 0x2028, 0x202e },
		{ 0x2060, 0x206f },
		{ 0x3164, 0x3164 },
		{ 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb },
		{ 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff },
	};
	size_t i = 0;
	const size_t count = sizeof(ranges) / sizeof(ranges[0]);

	while (i < count && code > ranges[i].last)
		i++;
	return i < count && code >= ranges[i].first;
}

/* Symbols and pictographs, far more than are emoji: all of them are seen. */
static bool
is_pictograph(uint32_t code)
{
	return code == 0xa9 || code == 0xae ||
	    (code >= 0x203c && code <= 0x2049) ||
	    (code >= 0x2100 && code <= 0x2bff) ||
	    (code >= 0x3030 && code <= 0x303d) || code == 0x3297 ||
	    code == 0x3299 || (code >= 0x1f000 && code <= 0x1faff);
}

/* The scripts of U+0600 to U+0DFF use joiners to spell. */
static bool
is_joining_letter(uint32_t code)
{
	return code >= 0x620 && code <= 0xdff;
}

/* What is a shape of its neighbours is not to be named. */
static bool
is_shape(uint32_t before, uint32_t code, uint32_t after)
{
	if (code == TEXT_STYLE || code == EMOJI_STYLE)
		return is_pictograph(before) || after == KEYCAP;
	if (code == JOINER && is_pictograph(after))
		return is_pictograph(before) || before == EMOJI_STYLE;
	return (code == JOINER || code == NON_JOINER) &&
	    is_joining_letter(before) && is_joining_letter(after);
}

void
invisible_add(struct buf *out, uint32_t *before, uint32_t code, uint32_t after)
{
	char text[4];

	if (code < SOFT_HYPHEN || !is_unseen(code) ||
	    is_shape(*before, code, after)) {
		buf_add(out, text, utf8_encode(code, text));
		*before = code;
		return;
	}
	/* a name is no neighbour */
	buf_addf(out, code < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)code);
	*before = 0;
}
