/* SPDX-License-Identifier: MIT */
#ifndef PYUTF8_H
#define PYUTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/*
 * UTF-8 as CPython's codec takes it, fault for fault, since our clients see its
 * messages and count its replacement characters.  A "lone surrogate" (U+D800 to
 * U+DFFF, which JSON can write as \ud800) is kept as the three bytes that the
 * same arithmetic gives; whoever writes text out must treat it.
 */

/* Append CPython's text for the fault at `at`: "'utf-8' codec can't decode byte
 * 0xff in position 0: invalid start byte". */
void pyutf8_explain(struct buf *out, const char *s, size_t len, size_t at);
/* Does s, which is fine otherwise, hold a lone surrogate? */
bool pyutf8_has_surrogate(const char *s, size_t len);

/* Decoding in pieces, U+FFFD in the place of what is faulty; all else is zero
 * at the start. */
struct pyutf8 {
	bool strict;	 /* what is faulty is the end instead, */
	bool failed;	 /* and this then true */
	char pending[4]; /* the beginning of a sequence */
	size_t count;
};

void pyutf8_add(struct pyutf8 *d, struct buf *out, const char *data,
    size_t len);
/* There comes no more. */
void pyutf8_end(struct pyutf8 *d, struct buf *out);
/* The same for a text that is there as a whole; out takes 3 * len bytes. */
void pyutf8_add_whole(struct buf *out, const char *data, size_t len);

#endif
