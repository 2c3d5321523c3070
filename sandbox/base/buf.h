/* SPDX-License-Identifier: MIT */
#ifndef BUF_H
#define BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The one bounded byte buffer.  `max` is set when it is initialised and never
 * passed: an append that would pass it appends nothing and marks the buffer as
 * overflowed; from then on nothing is appended until buf_reset(), so that it is
 * enough to check once at the end and what is there is a true beginning.  The
 * data is always followed by a NUL that is not counted.  When memory is out the
 * process logs and exits: no caller checks for that.
 */
struct buf {
	char *data; /* never NULL after the first append; see buf_str() */
	size_t len;
	size_t cap;
	size_t max;
	bool overflow;
};

/* Start empty; nothing is allocated yet.  max: bytes that it may ever hold. */
void buf_init(struct buf *b, size_t max);
/* Free the memory; the buffer is empty, with the same max, and usable. */
void buf_release(struct buf *b);
/* Forget the contents and the overflow mark, keep the memory. */
void buf_reset(struct buf *b);

void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_addv(struct buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* Room for len more bytes at the end; NULL (and overflow) if over max.  Write
 * there, then say with buf_commit() how many bytes were written (<= len). */
char *buf_reserve(struct buf *b, size_t len);
void buf_commit(struct buf *b, size_t len);
/* Drop all after the first len bytes (len <= b->len), and the first len. */
void buf_cut(struct buf *b, size_t len);
void buf_drop(struct buf *b, size_t len);

/* The contents as a C string, "" when empty.  Valid until the next change. */
const char *buf_str(const struct buf *b);
/* Hand the memory over (never NULL, NUL-terminated, caller frees); *len may be
 * NULL.  The buffer is empty afterwards. */
char *buf_steal(struct buf *b, size_t *len);

#define auto_buf __attribute__((cleanup(buf_release)))
/* Use as `auto_buf struct buf b = BUF_INIT(4096);` */
/* clang-format off */
#define BUF_INIT(limit) { .max = (limit) }
/* clang-format on */

/* malloc/strdup/strndup that log and exit when memory is out. */
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
/* A text as printf() writes it: heap, caller frees. */
char *xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
