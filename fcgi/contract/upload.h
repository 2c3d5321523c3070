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
	/* False: there is no room; nothing more will come. */
	bool (*data)(void *arg, const void *data, size_t len);
};

struct upload {
	struct multipart form;
	bool is_form;
	const struct upload_sink *sink;
	void *arg;
	int64_t max; /* bytes of a file */
	int64_t size;
	bool have; /* there is a file, and nothing else took its place */
	bool too_large;
	bool full;	 /* the sink had no room */
	bool into;	 /* the present part goes to the sink */
	bool into_text;	 /* it is a text of that name */
	bool have_text;	 /* such a text took the file's place */
	struct buf name; /* the file's; "unnamed" where it has none */
	struct buf text;
};

/* False: the detail is the answer, and there is nothing to release. */
bool upload_open(struct upload *up, const char *content_type, int64_t max,
    const struct upload_sink *sink, void *arg, struct detail *d);
void upload_release(struct upload *up);
/* The next bytes of the body.  False: read no more, upload_end() says why. */
bool upload_add(struct upload *up, const void *data, size_t len);
/* The body has ended, or upload_add() was false.  True: the sink has the file,
 * up->name and up->size tell of it.  False: the detail is the answer (400, 413,
 * 422, 507). */
bool upload_end(struct upload *up, struct detail *d);

#endif
