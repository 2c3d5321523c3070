/* SPDX-License-Identifier: MIT */
#ifndef PYDUMP_H
#define PYDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct pyvalue;

/*
 * Strings and values as Python's json.dumps() writes them.  s: UTF-8; a lone
 * surrogate in it is written as \udXXX, since nothing else may carry it.  What
 * is neither becomes U+FFFD.
 */
enum pydump_style {
	PYDUMP_UTF8,  /* ensure_ascii=False */
	PYDUMP_CLEAN, /* the same; a lone surrogate is no UTF-8 either */
	PYDUMP_ASCII, /* everything beyond ASCII, and DEL, as \uXXXX */
};

/* With its quotes. */
void pydump_add_string(struct buf *out, const char *s, size_t len,
    enum pydump_style style);
/* The same without quotes, for a string that is written in pieces. */
void pydump_add_text(struct buf *out, const char *s, size_t len,
    enum pydump_style style);
/* A value, without blanks, in UTF-8; NaN and the infinities, which JSON does
 * not have, as null. */
void pydump_add(struct buf *out, const struct pyvalue *value);
/* Append an answer by its form, as buf_addf() takes it.  A %s between quotes is
 * a text of JSON; any other %s is added as it is.  %.*s is the same for so many
 * bytes, NUL too.  The only other conversions are PRId64, and %g for a float
 * with all its digits. */
void pydump_addf(struct buf *out, enum pydump_style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Python's repr(), which validators put into what they say. */
void pydump_add_repr(struct buf *out, const struct pyvalue *value);
/* str.isprintable() of one code point, as of Unicode 14 (CPython 3.11). */
bool pydump_is_printable(uint32_t code);

#endif
