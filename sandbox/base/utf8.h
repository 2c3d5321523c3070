/* SPDX-License-Identifier: MIT */
#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fault of a sequence. */
enum utf8_fault {
	UTF8_FINE,
	UTF8_WRONG, /* an invalid byte */
	UTF8_END,   /* cut off by the end of the data */
};

/* Look at what starts at s (len > 0 bytes there).  The length of the sequence
 * or, when it is faulty (overlong, above U+10FFFF, a surrogate, cut off), of
 * what one U+FFFD replaces. */
size_t utf8_look(const char *s, size_t len, enum utf8_fault *fault);
/* Bytes of s before the first that is not ASCII; len when there is none. */
size_t utf8_ascii(const char *s, size_t len);
/* Bytes of s before the first faulty sequence; len when there is none. */
size_t utf8_span(const char *s, size_t len);

/* Length in bytes of the valid UTF-8 sequence at s (len bytes there), or 0 when
 * there is none. */
size_t utf8_step(const char *s, size_t len);
bool utf8_valid(const char *s, size_t len);
/* The code point of a sequence without fault, surrogates included. */
uint32_t utf8_decode(const char *s, size_t step);
/* Write one (surrogates too); its length. */
size_t utf8_encode(uint32_t code, char out[4]);
/* A byte that continues a character. */
bool utf8_is_tail(char c);
/* Unicode's spaces within a line, and the braille cell without a dot: seen, but
 * there is nothing to see. */
bool utf8_is_blank(uint32_t code);

#endif
