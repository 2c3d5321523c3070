/* SPDX-License-Identifier: MIT */
#ifndef EVAL_REFUSAL_H
#define EVAL_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include "../../../sandbox/base/buf.h"

struct pyvalue;

/* An answer of /eval that is no result; and its other errors, as constants. */
struct eval_refusal {
	int status;
	const char *title; /* static */
	/* UTF-8, but for lone surrogates; may be empty; to be released */
	struct buf description;
};

/* What a description is at most; a longer one is cut and ends in "…". */
#define EVAL_DESCRIPTION_MAX ((size_t)1 << 20)

/* Without a description; then one may be written to `description`.  All return
 * false, so that a check can end with them. */
bool eval_refuse(struct eval_refusal *refusal, int status, const char *title);
bool eval_refuse_with(struct eval_refusal *refusal, int status,
    const char *title, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* 400, EVAL_TITLE_INVALID: "<repr><why>". */
bool eval_refuse_value(struct eval_refusal *refusal,
    const struct pyvalue *value, const char *why, ...)
    __attribute__((format(printf, 3, 4)));

#define EVAL_TITLE_INVALID "Request data failed validation"
#define EVAL_TITLE_FILE "Request file is invalid"
#define EVAL_TITLE_LARGE "413 Content Too Large"
#define EVAL_TITLE_MEDIA "415 Unsupported Media Type"

#define EVAL_TOO_LONG "The arguments, or standard input, are too long."

/* What of the service's formats the client prefers, by its Accept header (NULL:
 * none was sent).  The answer's Content-Type; NULL: an empty body. */
const char *eval_refusal_type(const char *accept);
/* Append the body in that format. */
void eval_refusal_add(struct buf *out, const struct eval_refusal *refusal,
    const char *type);

#endif
