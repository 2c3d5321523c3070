/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define BUF_FIRST 256 /* bytes of the first allocation, when max allows */

void *
xmalloc(size_t size)
{
	return xrealloc(NULL, size);
}

void *
xcalloc(size_t n, size_t size)
{
	void *p = calloc(n > 0 ? n : 1, size > 0 ? size : 1);

	if (p == NULL)
		log_fatal(1, "out of memory bytes=%zux%zu", n, size);
	return p;
}

void *
xrealloc(void *p, size_t size)
{
	void *q = realloc(p, size > 0 ? size : 1);

	if (q == NULL)
		log_fatal(1, "out of memory bytes=%zu", size);
	return q;
}

char *
xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *
xstrndup(const char *s, size_t len)
{
	size_t n = strnlen(s, len);
	char *copy = xmalloc(n + 1);

	memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

char *
xprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		log_fatal(1, "out of memory");
	return text;
}

/* max with room left for the NUL and for pointer differences. */
static size_t
buf_limit(const struct buf *b)
{
	return b->max < PTRDIFF_MAX ? b->max : PTRDIFF_MAX - 1;
}

/* Room for `need` bytes, the NUL among them: twice as much as before, up to the
 * limit. */
static void
buf_grow(struct buf *b, size_t need)
{
	size_t cap = b->cap > 0 ? b->cap : BUF_FIRST;
	size_t most = buf_limit(b) + 1;

	if (b->cap >= need)
		return;
	while (cap < need)
		cap = cap > most / 2 ? most : cap * 2;
	if (cap > most)
		cap = most;
	b->data = xrealloc(b->data, cap);
	b->cap = cap;
}

void
buf_init(struct buf *b, size_t max)
{
	*b = (struct buf)BUF_INIT(max);
}

void
buf_release(struct buf *b)
{
	if (b == NULL)
		return;
	free(b->data);
	buf_init(b, b->max);
}

void
buf_reset(struct buf *b)
{
	b->overflow = false;
	buf_cut(b, 0);
}

char *
buf_reserve(struct buf *b, size_t len)
{
	if (b->overflow || len > buf_limit(b) - b->len) {
		b->overflow = true;
		return NULL;
	}
	buf_grow(b, b->len + len + 1);
	b->data[b->len] = '\0';
	return b->data + b->len;
}

void
buf_commit(struct buf *b, size_t len)
{
	if (len == 0)
		return;
	b->len += len;
	b->data[b->len] = '\0';
}

void
buf_cut(struct buf *b, size_t len)
{
	if (len < b->len)
		b->len = len;
	if (b->data != NULL)
		b->data[b->len] = '\0';
}

void
buf_drop(struct buf *b, size_t len)
{
	if (len == 0)
		return;
	memmove(b->data, b->data + len, b->len - len);
	buf_cut(b, b->len - len);
}

void
buf_add(struct buf *b, const void *data, size_t len)
{
	char *room = buf_reserve(b, len);

	if (room == NULL || len == 0)
		return;
	memcpy(room, data, len);
	buf_commit(b, len);
}

void
buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void
buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_addv(b, fmt, ap);
	va_end(ap);
}

/* Measured first: what does not fit is not written at all. */
void
buf_addv(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char *room;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0) {
		b->overflow = true;
		return;
	}
	room = buf_reserve(b, (size_t)len);
	if (room == NULL)
		return;
	(void)vsnprintf(room, (size_t)len + 1, fmt, ap);
	buf_commit(b, (size_t)len);
}

const char *
buf_str(const struct buf *b)
{
	return b->data != NULL ? b->data : "";
}

char *
buf_steal(struct buf *b, size_t *len)
{
	char *data = b->data != NULL ? b->data : xstrdup("");

	if (len != NULL)
		*len = b->len;
	buf_init(b, b->max);
	return data;
}
