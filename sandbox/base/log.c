/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

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
