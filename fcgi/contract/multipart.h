/* SPDX-License-Identifier: MIT */
#ifndef MULTIPART_H
#define MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "../../sandbox/base/buf.h"

/*
 * multipart/form-data (RFC 7578, RFC 2046) as it streams in: the parts' heads
 * and slices of their data go to callbacks; of what was seen nothing but a head
 * and the beginning of a delimiter is kept.
 */
#define MULTIPART_HEAD_MAX 8192	      /* bytes of a part's head */
#define MULTIPART_PARTS_MAX 1000      /* fields, and files */
#define MULTIPART_FIELD_MAX (1 << 20) /* bytes of a field that is no file */
#define MULTIPART_BOUNDARY_MAX 200

/* The head of a part.  Texts are UTF-8 without NUL and valid during the call
 * only; what was sent as something else is taken for ISO 8859-1. */
struct multipart_part {
	const char *name;
	const char *filename; /* NULL: a field that is no file */
};

/* False from one of them ends it all. */
struct multipart_calls {
	bool (*begin)(void *arg, const struct multipart_part *part);
	bool (*data)(void *arg, const void *data, size_t len);
	bool (*end)(void *arg);
};

enum multipart_state {
	MULTIPART_PREAMBLE,
	MULTIPART_HEAD,
	MULTIPART_DATA,
	MULTIPART_EPILOGUE,
	MULTIPART_FAILED,
};

struct multipart {
	const struct multipart_calls *calls;
	void *arg;
	enum multipart_state state;
	char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* "\r\n--boundary" */
	size_t delimiter_len;
	struct buf held; /* what cannot be told yet, and what just came */
	bool is_file;
	size_t field_len;
	size_t files;
	size_t fields;
	bool preamble;	   /* there was one, not just empty lines */
	const char *error; /* why it FAILED, for the client; NULL: a call
			    * ended it */
};

enum multipart_kind {
	MULTIPART_FINE,
	MULTIPART_OTHER,       /* another Content-Type, or none: NULL */
	MULTIPART_NO_BOUNDARY, /* MULTIPART_MISSING_BOUNDARY */
};

#define MULTIPART_MISSING_BOUNDARY "Missing boundary in multipart."
#define MULTIPART_INVALID "Invalid multipart data."

/* After anything but MULTIPART_FINE there is nothing to release. */
enum multipart_kind multipart_open(struct multipart *m,
    const char *content_type, const struct multipart_calls *calls, void *arg);
void multipart_release(struct multipart *m);
/* The next bytes of the body, as they come.  False: it has failed. */
bool multipart_add(struct multipart *m, const void *data, size_t len);
/* The body has ended.  False: too early. */
bool multipart_end(struct multipart *m);

#endif
