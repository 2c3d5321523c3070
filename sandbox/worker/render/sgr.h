/* SPDX-License-Identifier: MIT */
#ifndef SGR_H
#define SGR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/*
 * Colours and weight of characters: the numbers of a control sequence that ends
 * in 'm' (SGR, ECMA-48 8.3.117), and of them what Discord shows in an ansi
 * block: bold, underline, eight colours of the text and eight behind it.
 *
 * A style is a number: 0 is nothing special.
 */

/* The numbers of any control sequence: "1;31".  One that is left out is 0, one
 * beyond 65535 is that. */
#define SGR_NUMBERS 32

struct sgr_numbers {
	uint16_t values[SGR_NUMBERS]; /* at least one */
	bool sub[SGR_NUMBERS]; /* it belongs to the one before: after ':' */
	size_t count;
};

/* Read them; more than SGR_NUMBERS are left out.  False: the sequence is a
 * private one, or holds something else. */
bool sgr_numbers(struct sgr_numbers *numbers, const char *s, size_t len);

/* The style after these numbers.  Bright colours, the 256 and those of 24 bits
 * become the nearest in hue; those almost without hue black or white, of which
 * Discord shows black as grey. */
uint16_t sgr_apply(uint16_t style, const struct sgr_numbers *numbers);
/* Does a blank show it? */
bool sgr_fills(uint16_t style);
/* Append the sequence from one style to another: it says all of `to`, and
 * begins with a reset where something of `from` could stay.  At most SGR_MAX
 * bytes. */
#define SGR_MAX 16
#define SGR_RESET "\033[0m"
void sgr_add(struct buf *out, uint16_t from, uint16_t to);

#endif
