/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
