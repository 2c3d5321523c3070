/* SPDX-License-Identifier: MIT */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * Text that a terminal would show of a program's output, which is any bytes.
 *
 * It obeys \r, backspace, tab, and the control sequences of ECMA-48 by which
 * programs draw a line again: cursor up and down (A, B, E, F), right and left
 * (C, D), to a column (G), erase in a line (K) and to the end (J), and SGR (m).
 * All other control sequences, control strings and control characters are
 * dropped.  Bytes that are no UTF-8 become U+FFFD, invisible characters are
 * named (text.h).
 *
 * The terminal has TERMINAL_COLUMNS columns, and the cursor reaches the last
 * TERMINAL_ROWS rows.  A longer line goes on in the next row, and is shown as
 * one line.  A column holds a code point, as Python's len() counts, since fonts
 * differ in widths.
 *
 * The time is linear in len; the memory is 200 KiB and the appended text.
 */
#define TERMINAL_COLUMNS 512 /* a multiple of a tab's 8 */
#define TERMINAL_ROWS 50
/* Most bytes that are appended for len. */
#define TERMINAL_SHOWN_MAX(len) (5 * (len) + 8192)

/* Longest sequence of a colour, and the one that ends all colours. */
#define SGR_MAX 16
#define SGR_RESET "\033[0m"

enum terminal_colours {
	TERMINAL_PLAIN,	  /* text alone */
	TERMINAL_COLOURS, /* with the colours, as below */
};

/* Append the shown text: valid UTF-8 without control characters but \n and \t.
 * Colours are SGR sequences of Discord's eight: 1 bold, 4 underline, 30-37,
 * 40-47; others become the nearest of these.  Each sequence sets the whole
 * style, so that a part of the text can be shown by itself: "\033[0m" for no
 * style, "\033[0;…m" after another style.  True: there are sequences. */
bool terminal_show(struct buf *out, const char *data, size_t len,
    enum terminal_colours colours);

#endif
