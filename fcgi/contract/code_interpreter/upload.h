/* SPDX-License-Identifier: MIT */
#ifndef UPLOAD_H
#define UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "detail.h"
#include "../multipart.h"

/*
 * POST /v1/files: the field `file` of a form, as it comes.  Of several the last
 * one counts; what is past the bound is read and dropped.
 */
struct upload {
	struct multipart form; /* takes the bytes: multipart_add() */
	int64_t max;	       /* bytes of a file */
	int64_t size;
	bool into;	 /* the present part has that name */
	bool have;	 /* there is a file, and nothing took its place */
	bool have_text;	 /* a text is in its place */
	struct buf name; /* the file's; "unnamed" where it has none */
	struct buf text;
};

/* False: the detail is the answer, and there is nothing to release. */
bool upload_open(struct upload *up, const char *content_type, int64_t max,
    struct detail *d);
void upload_release(struct upload *up);
/* MULTIPART_PART: a file begins; forget what came before it, if anything.
 * MULTIPART_SLICE: data of it, in form.  MULTIPART_FAILED: read no more,
 * upload_end() says why. */
enum multipart_event upload_next(struct upload *up);
/* The body has ended, or failed.  True: that was the file, name and size tell
 * of it.  False: the detail is the answer (400, 413, 422). */
bool upload_end(struct upload *up, struct detail *d);

#endif
