/* SPDX-License-Identifier: MIT */
#ifndef JTEXT_H
#define JTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct jvalue;

/*
 * Strings and values as JSON.  s: UTF-8; a lone surrogate in it is written as
 * \udXXX, since nothing else may carry it.  Bytes that are neither become
 * U+FFFD.
 */
enum jtext_style {
	JTEXT_UTF8,  /* UTF-8 */
	JTEXT_CLEAN, /* the same; a lone surrogate is no UTF-8 either */
	JTEXT_ASCII, /* everything beyond ASCII, and DEL, as \uXXXX */
};

/* With its quotes. */
void jtext_add_string(struct buf *out, const char *s, size_t len,
    enum jtext_style style);
/* The same without quotes, for a string that is written in pieces. */
void jtext_add_text(struct buf *out, const char *s, size_t len,
    enum jtext_style style);
/* A value, without blanks, in UTF-8; numbers as they were sent. */
void jtext_add(struct buf *out, const struct jvalue *value);
/* The same for people, with single quotes: {'a': 1}. */
void jtext_add_quoted(struct buf *out, const struct jvalue *value);
/* Append an answer by its form, as buf_addf() takes it.  A %s between quotes is
 * a text of JSON; any other %s is added as it is.  %.*s is the same for so many
 * bytes, NUL too.  The only other conversion is PRId64. */
void jtext_addf(struct buf *out, enum jtext_style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
