/* SPDX-License-Identifier: MIT */
#ifndef MESSAGE_CUT_H
#define MESSAGE_CUT_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * A text for which there is not room: its ends, or one of them, as whole lines
 * where a line ends near the cut, and a line that says how much is left out.
 * The text is valid UTF-8; colours in it are as terminal.h has them.  They
 * count among the code points, end before that line and go on after it.
 */

/* What goes when the block does not fit. */
enum message_cut {
	MESSAGE_CUT_END,
	MESSAGE_CUT_MIDDLE,
	MESSAGE_CUT_START,
};

/* Keeps two back-ticks of a block apart: a zero-width space. */
#define MESSAGE_APART "\xe2\x80\x8b"

/* Are its code points no more than room, its lines no more than lines_max (0:
 * any number)? */
bool message_cut_fits(const char *text, size_t len, size_t lines_max,
    size_t room);
/* Append all of it, or what fits of it. */
void message_cut_add(struct buf *out, const char *text, size_t len,
    enum message_cut cut, size_t lines_max, size_t room);

#endif
