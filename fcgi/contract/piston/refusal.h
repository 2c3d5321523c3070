/* SPDX-License-Identifier: MIT */
#ifndef PISTON_REFUSAL_H
#define PISTON_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include "../../../sandbox/base/buf.h"

/* What is refused, and how: {"message": …}, which is to be released. */
struct piston_refusal {
	int status;
	struct buf body;
};

/* A language and a range may be as long as a body. */
#define PISTON_REFUSAL_MAX ((size_t)1 << 30)

/* A refusal with a text.  Always false. */
bool piston_refuse(struct piston_refusal *refusal, int status, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
/* The same of a text that may hold anything. */
bool piston_refuse_bytes(struct piston_refusal *refusal, int status,
    const char *text, size_t len);

#endif
