/* SPDX-License-Identifier: MIT */
#ifndef UTF8_DECODER_H
#define UTF8_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/*
 * UTF-8 that comes in pieces.  U+FFFD takes the place of faulty bytes, as many
 * as CPython's codec writes.  All zero at the start.
 */
struct utf8_decoder {
	char pending[4]; /* the beginning of a sequence */
	size_t count;
};

void utf8_decoder_add(struct utf8_decoder *d, struct buf *out, const char *data,
    size_t len);
/* No more comes. */
void utf8_decoder_end(struct utf8_decoder *d, struct buf *out);
/* Decode a whole text; out takes 3 * len bytes. */
void utf8_decoder_add_whole(struct buf *out, const char *data, size_t len);

#endif
