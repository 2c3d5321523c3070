/* SPDX-License-Identifier: MIT */
#ifndef UPLOAD_H
#define UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detail.h"
#include "multipart.h"

/*
 * POST /v1/files: the field `file` of a form goes to a sink as it comes.  Of
 * several the last one counts; what is past the bound is read and dropped.
 */
struct upload_sink {
	/* A file begins; forget what came before it, if anything.  False: as
	 * of data. */
	bool (*begin)(void *arg);
	/* False: it takes no more, and its owner knows why. */
	bool (*data)(void *arg, const void *data, size_t len);
};

struct upload {
	struct multipart form;
	const struct upload_sink *sink;
	void *arg;
	int64_t max; /* bytes of a file */
	int64_t size;
	bool into;	 /* the present part has that name */
	bool have;	 /* there is a file, and nothing took its place */
	bool have_text;	 /* a text is in its place */
	struct buf name; /* the file's; "unnamed" where it has none */
	struct buf text;
};

/* False: the detail is the answer, and there is nothing to release. */
bool upload_open(struct upload *up, const char *content_type, int64_t max,
    const struct upload_sink *sink, void *arg, struct detail *d);
void upload_release(struct upload *up);
/* The next bytes of the body, at most MULTIPART_PIECE.  False: read no more,
 * upload_end() or the sink says why. */
bool upload_add(struct upload *up, const void *data, size_t len);
/* The body has ended, or upload_add() was false.  True: the sink has the file,
 * up->name and up->size tell of it.  False: the detail is the answer (400, 413,
 * 422). */
bool upload_end(struct upload *up, struct detail *d);

#endif
