#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	errno = saved;
	return -1;
}

int
err_system(struct err *err, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;
	size_t len;

	err->code = ERR_SYSTEM;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	(void)snprintf(err->text + len, sizeof(err->text) - len, ": %s",
	    strerror(saved));
	errno = saved;
	return -1;
}

int
err_wrap(struct err *err, const char *fmt, ...)
{
	int saved = errno;
	char inner[sizeof(err->text)];
	va_list ap;
	size_t len;

	memcpy(inner, err->text, sizeof(inner));
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	(void)snprintf(err->text + len, sizeof(err->text) - len, ": %s", inner);
	errno = saved;
	return -1;
}

const char *
err_code_name(enum err_code code)
{
	switch (code) {
	case ERR_NONE:
		return "none";
	case ERR_SYSTEM:
		return "system";
	case ERR_INPUT:
		return "input";
	case ERR_NOT_FOUND:
		return "not-found";
	case ERR_CONFLICT:
		return "conflict";
	case ERR_LIMIT:
		return "limit";
	case ERR_QUOTA:
		return "quota";
	case ERR_BUSY:
		return "busy";
	case ERR_TIMEOUT:
		return "timeout";
	case ERR_UNAVAILABLE:
		return "unavailable";
	case ERR_PROTOCOL:
		return "protocol";
	case ERR_CONFIG:
		return "config";
	}
	return "unknown";
}
