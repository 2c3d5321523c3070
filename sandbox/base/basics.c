/* SPDX-License-Identifier: MIT */
#include "base/basics.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

/* ---- the bounded buffer; memory ---- */

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

/* ---- errors ---- */

/* Format the text, with ": tail" after it unless that is NULL.  Keeps errno. */
static void __attribute__((format(printf, 2, 0)))
err_fill(struct err *err, const char *fmt, va_list ap, const char *tail)
{
	int saved = errno;
	size_t len;

	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	len = strlen(err->text);
	if (tail != NULL)
		(void)snprintf(err->text + len, sizeof(err->text) - len, ": %s",
		    tail);
	errno = saved;
}

int
err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	err_fill(err, fmt, ap, NULL);
	va_end(ap);
	return -1;
}

int
err_system(struct err *err, const char *fmt, ...)
{
	va_list ap;

	err->code = ERR_SYSTEM;
	va_start(ap, fmt);
	err_fill(err, fmt, ap, strerror(errno));
	va_end(ap);
	return -1;
}

int
err_wrap(struct err *err, const char *fmt, ...)
{
	struct err inner = *err;
	va_list ap;

	va_start(ap, fmt);
	err_fill(err, fmt, ap, inner.text);
	va_end(ap);
	return -1;
}

/* ---- the log ---- */

#define LOG_LINE 1000 /* bytes of a line, its newline not counted */

static const char *log_program = "inline";
static enum log_level log_limit = LOG_LEVEL_INFO;
static bool log_plain; /* a person reads it: no priorities */

void
log_init(const char *program, enum log_level level)
{
	log_program = program;
	log_limit = level;
	log_plain = isatty(STDERR_FILENO) != 0;
}

/* Append text escaped; stop before what does not fit whole. */
static size_t
log_escape(char *line, size_t used, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		size_t step = utf8_step(text, left);
		unsigned char c = (unsigned char)*text;
		bool bad = step == 0 || c < 0x20 || c == 0x7f;
		size_t need = bad ? 4 : step;

		if (used + need > LOG_LINE)
			break;
		if (bad) {
			(void)snprintf(line + used, need + 1, "\\x%02x", c);
			step = 1;
		} else {
			memcpy(line + used, text, step);
		}
		used += need;
		text += step;
		left -= step;
	}
	return used;
}

/* One write(2), so that lines of several processes do not mix. */
static void __attribute__((format(printf, 2, 0)))
log_write(enum log_level level, const char *fmt, va_list ap)
{
	int saved = errno;
	char text[LOG_LINE + 8];
	char line[LOG_LINE + 8];
	size_t used = 0;

	if (level > log_limit)
		return;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	if (!log_plain) {
		(void)snprintf(line, sizeof(line), "<%d>", (int)level);
		used = strlen(line);
	}
	used = log_escape(line, used, log_program);
	used = log_escape(line, used, ": ");
	used = log_escape(line, used, text);
	line[used++] = '\n';
	/* When the log cannot be written, there is nobody left to tell. */
	(void)TEMP_FAILURE_RETRY(write(STDERR_FILENO, line, used));
	errno = saved;
}

void
log_at(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(level, fmt, ap);
	va_end(ap);
}

void
log_fatal(int exit_code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(LOG_LEVEL_ERR, fmt, ap);
	va_end(ap);
	exit(exit_code);
}

/* ---- time ---- */

static int64_t
clock_us(clockid_t id)
{
	struct timespec now;

	/* Cannot fail: both clocks always exist on Linux. */
	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t
clock_monotonic_ms(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

int64_t
clock_monotonic_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

int64_t
clock_wall_ms(void)
{
	return clock_us(CLOCK_REALTIME) / 1000;
}

int
clock_poll_timeout(int64_t deadline_ms)
{
	int64_t now = clock_monotonic_ms();

	if (deadline_ms < 0)
		return -1;
	if (deadline_ms <= now)
		return 0;
	return deadline_ms - now < INT_MAX ? (int)(deadline_ms - now) : INT_MAX;
}

int64_t
clock_backoff_ms(int64_t first_ms, int64_t most_ms, int failures)
{
	for (; failures > 0 && first_ms < most_ms; failures--)
		first_ms *= 2;
	return first_ms < most_ms ? first_ms : most_ms;
}
