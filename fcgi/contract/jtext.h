/* SPDX-License-Identifier: MIT */
#ifndef JTEXT_H
#define JTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct buf;

/*
 * Strings and values as JSON.  Bytes of a string that are no UTF-8 become
 * U+FFFD.
 */
enum jtext_style {
	JTEXT_UTF8,
	JTEXT_ASCII, /* everything beyond ASCII, and DEL, as \uXXXX */
};

/* With its quotes. */
void jtext_add_string(struct buf *out, const char *s, size_t len,
    enum jtext_style style);
/* The same without quotes, for a string that is written in pieces. */
void jtext_add_text(struct buf *out, const char *s, size_t len,
    enum jtext_style style);
/* A text as a value, which the caller owns.  Bytes that are no UTF-8 become
 * U+FFFD. */
json_t *jtext_pack(const char *s, size_t len);
/* A value; flags: JSON_COMPACT, JSON_ENSURE_ASCII. */
void jtext_add(struct buf *out, const json_t *value, size_t flags);
/* Append an answer by its form, as buf_addf() takes it.  A %s between quotes is
 * a text of JSON; any other %s is added as it is.  %.*s is the same for so many
 * bytes, NUL too.  The only other conversion is PRId64. */
void jtext_addf(struct buf *out, enum jtext_style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
