/* SPDX-License-Identifier: MIT */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * What a terminal would show of a program's output, which is any bytes.
 *
 * Obeyed are \r, backspace, tab, and of ECMA-48's control sequences those by
 * which programs draw a line again: the cursor up and down (A, B, E, F), to the
 * right and left (C, D), to a column (G), erasing in a line (K) and to the end
 * (J), and SGR (m).  All other control sequences, control strings and control
 * characters are taken out.  Bytes that are no UTF-8 become U+FFFD, characters
 * that nobody sees are named (text.h).
 *
 * The terminal has TERMINAL_COLUMNS columns, and the cursor reaches the last
 * TERMINAL_ROWS rows.  A longer line goes on in the next row, and is one line
 * again in what is shown.  A column holds a code point, as Python's len()
 * counts: fonts differ in what is wide.
 *
 * The time is linear in len, the memory 200 KiB beside what is appended.
 */
#define TERMINAL_COLUMNS 512 /* a multiple of a tab's 8 */
#define TERMINAL_ROWS 50
/* Bytes that are appended for len at most. */
#define TERMINAL_SHOWN_MAX(len) (5 * (len) + 8192)

/* A sequence of a colour, at most, and the one that ends all. */
#define SGR_MAX 16
#define SGR_RESET "\033[0m"

enum terminal_colours {
	TERMINAL_PLAIN,	  /* text alone */
	TERMINAL_COLOURS, /* with the colours, as below */
};

/* Append what is shown: valid UTF-8 without control characters but \n and \t.
 * Colours are SGR sequences of Discord's eight: 1 bold, 4 underline, 30-37,
 * 40-47; others become the nearest of these.  Each sequence says all that holds
 * after it, so that a part of the text can be shown by itself: "\033[0m" when
 * that is nothing, "\033[0;…m" where something held before.  True: there are
 * some. */
bool terminal_show(struct buf *out, const char *data, size_t len,
    enum terminal_colours colours);

#endif
