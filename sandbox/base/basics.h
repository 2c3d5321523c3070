/* SPDX-License-Identifier: MIT */
#ifndef BASICS_H
#define BASICS_H

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Scope-bound ownership: a variable with one of these attributes is released
 * when its scope ends, however it ends.  Such a variable must be initialised
 * where it is declared.
 */

static inline void
cleanup_free(void *p)
{
	free(*(void **)p);
}

/* Close it, if it is open; it is -1 afterwards. */
static inline void
cleanup_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static inline void
cleanup_dir(DIR **dir)
{
	if (*dir != NULL)
		(void)closedir(*dir);
}

/* A heap pointer of any type: free() at the end of the scope. */
#define auto_free __attribute__((cleanup(cleanup_free)))
/* A descriptor, -1 when there is none: close() at the end of the scope. */
#define auto_close __attribute__((cleanup(cleanup_close)))
/* A list of a folder, NULL when there is none: closedir() likewise. */
#define auto_dir __attribute__((cleanup(cleanup_dir)))

/* Take a descriptor out of its auto_close variable: the caller owns it now. */
static inline int
steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

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

/*
 * One error object for every module.  It is the caller's, of fixed size, and
 * there is nothing to free.  A function that takes `struct err *err` returns 0
 * when it succeeded (and did not touch err) or -1 (and filled it).
 *
 * The text is for operators and logs; it is never shown to a Discord user.
 */
enum err_code {
	ERR_NONE = 0,
	ERR_SYSTEM,    /* a system call failed: text ends in strerror */
	ERR_INPUT,     /* input from outside is malformed */
	ERR_NOT_FOUND, /* the named thing does not exist */
	ERR_CONFLICT,  /* somebody else was first, or the state moved on */
	ERR_LIMIT,     /* a bound was reached */
	ERR_QUOTA,     /* somebody has his share of what others may have, too */
	ERR_BUSY,      /* in use now; trying later makes sense */
	ERR_TIMEOUT,   /* the deadline passed */
	ERR_UNAVAILABLE, /* a part that we need is not there (engine, net) */
	ERR_PROTOCOL,	 /* a peer of ours broke the protocol, or hung up */
	ERR_UNKNOWN,	 /* it went away in the middle: nobody knows whether
			  * what was asked for is done */
	ERR_CONFIG,	 /* configuration or installation is wrong */
};

struct err {
	enum err_code code;
	char text[256];
};

/* Fill err with a formatted text, cut to fit.  Always returns -1. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with ERR_SYSTEM and ": <strerror(errno)>" appended.  Keeps errno. */
int err_system(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Put "<formatted>: " before the text that is there.  Always returns -1. */
int err_wrap(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Log lines go to standard error as `<N>program: text key=value …`, where <N>
 * is the syslog priority that the journal understands.  errno is kept.  Bytes
 * below 0x20, 0x7f and bytes over 0x7f that are not valid UTF-8 are written as
 * \xNN, lines are cut at 1,000 bytes.  Never log tokens, signatures, message
 * bodies or source code.  Keys: job, interaction, user, sandbox, cell, ms.
 */
enum log_level { /* numbered as by syslog(3) */
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARN = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* program: kept, not copied.  level: the most talkative one to write. */
void log_init(const char *program, enum log_level level);

void log_at(enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#define log_err(...) log_at(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Log at LOG_LEVEL_ERR and exit: 64 usage, 78 configuration, 1 other. */
void log_fatal(int exit_code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* The monotonic clock, for deadlines and durations; the wall clock, for what is
 * stored and shown. */
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_us(void);
int64_t clock_wall_ms(void);
/* Time left until a monotonic deadline, for poll(): 0..INT_MAX, or -1 when the
 * deadline is negative (none). */
int clock_poll_timeout(int64_t deadline_ms);
/* Pause before the next try: first_ms, twice as long after each failure in a
 * row that came before, and most_ms at most. */
int64_t clock_backoff_ms(int64_t first_ms, int64_t most_ms, int failures);

#endif
