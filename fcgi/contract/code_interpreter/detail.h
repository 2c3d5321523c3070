/* SPDX-License-Identifier: MIT */
#ifndef DETAIL_H
#define DETAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "../../../sandbox/base/buf.h"

struct pyjson;
struct pyvalue;

/*
 * What the code-interpreter routes refuse with: {"detail": …}, either a text or
 * the list of everything that does not fit the request's model, as pydantic and
 * FastAPI write it.  `body` is the whole answer, in UTF-8, and to be released.
 */
struct detail {
	int status;
	size_t count; /* of a list */
	struct buf body;
};

/* Of the answer; a list that would be longer is ended before that. */
#define DETAIL_MAX ((size_t)256 << 20)
#define DETAIL_COUNT_MAX 1000

/* A text; always false. */
bool detail_text(struct detail *d, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same of a text that may hold anything, NUL too. */
bool detail_bytes(struct detail *d, int status, const char *text, size_t len);

/* ---- a list ---- */

/* Where in the body: {"files", 0, "path"}, {"code"}, or nothing. */
struct detail_place {
	const char *member; /* NULL: the body itself */
	bool indexed;
	size_t index;
	const char *inner; /* of the item; NULL: the item itself */
};

/* What can be wrong; the texts are in detail.c. */
enum detail_fault {
	DETAIL_MISSING,
	DETAIL_NO_OBJECT,
	DETAIL_NO_LIST,
	DETAIL_NO_STRING,
	DETAIL_NO_UNICODE,
	DETAIL_NO_INT,
	DETAIL_BELOW_1,
	DETAIL_ABOVE_86400,
	DETAIL_NO_BOOL,
	DETAIL_UNCLEAR_BOOL,
	DETAIL_NO_FILE,
};

/* Begin with an empty list and status 422. */
void detail_begin(struct detail *d);
/* One more.  input: what was sent; NULL: null. */
void detail_add(struct detail *d, enum detail_fault fault,
    const struct detail_place *place, const struct pyvalue *input);
/* Nothing was added: true, and released.  Otherwise the answer is made. */
bool detail_end(struct detail *d);

/* ---- the body of a request ---- */

/* Parse what is to be an object, and is followed by a NUL.  content_type NULL:
 * none was sent.  False: the answer is made.  What is no object is refused
 * here. */
bool detail_parse(struct pyjson *doc, const char *content_type,
    const char *body, size_t len, struct detail *d);

#endif
