/* SPDX-License-Identifier: MIT */
#include "refusal.h"

#include <stdarg.h>

#include "../../pytext/pydump.h"

bool
piston_refuse_bytes(struct piston_refusal *refusal, int status,
    const char *text, size_t len)
{
	*refusal = (struct piston_refusal){ .status = status,
		.body = BUF_INIT(PISTON_REFUSAL_MAX) };
	buf_adds(&refusal->body, "{\"message\":");
	pydump_add_string(&refusal->body, text, len, PYDUMP_UTF8);
	buf_adds(&refusal->body, "}");
	return false;
}

bool
piston_refuse(struct piston_refusal *refusal, int status, const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(4096);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	return piston_refuse_bytes(refusal, status, buf_str(&text), text.len);
}
