/* SPDX-License-Identifier: MIT */
#ifndef MULTIPART_H
#define MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/basics.h"

/*
 * The parameters of header fields, and the header of a download.
 */

/* Find a parameter ("filename", in any case) of a field's value ("form-data;
 * name=…") and append its value, unquoted.  False: it is not there, or the
 * field is malformed up to there. */
bool disposition_get(struct buf *out, const char *field, size_t len,
    const char *name);
/* The same as a file's name, in UTF-8: `filename`, in ISO 8859-1 where it is no
 * UTF-8, or `filename*` (RFC 8187) where there is only that.  A Windows path is
 * cut to its last part, unless the whole is wanted. */
bool disposition_get_filename(struct buf *out, const char *field, size_t len,
    bool whole);

/* Append "attachment; filename=…" (RFC 6266) for any name: as ASCII, without
 * quotes, backslashes and controls.  Where that differs from the name, the name
 * follows as it is.  A name that no file system takes is cut, since clients and
 * nginx bound a header. */
#define DISPOSITION_NAME_MAX 1024
void disposition_add(struct buf *out, const char *name);

/*
 * multipart/form-data (RFC 7578, RFC 2046) as it streams in: it is told event
 * by event; of what was seen nothing but a head and the beginning of a
 * delimiter is kept.
 */
#define MULTIPART_PIECE 65536	      /* bytes that may come at once */
#define MULTIPART_HEAD_MAX 8192	      /* bytes of a part's head */
#define MULTIPART_PARTS_MAX 1000      /* fields, and files */
#define MULTIPART_FIELD_MAX (1 << 20) /* bytes of a field that is no file */
#define MULTIPART_BOUNDARY_MAX 200

#define MULTIPART_MISSING_BOUNDARY "Missing boundary in multipart."
#define MULTIPART_INVALID "Invalid multipart data."

enum multipart_event {
	MULTIPART_MORE,	 /* nothing, before more is added */
	MULTIPART_PART,	 /* a part begins: name, filename, is_file */
	MULTIPART_SLICE, /* data of it: data, data_len */
	MULTIPART_FAILED,
};

enum multipart_state {
	MULTIPART_PREAMBLE,
	MULTIPART_HEAD,
	MULTIPART_DATA,
	MULTIPART_EPILOGUE,
};

struct multipart {
	/* Of the present part, in UTF-8 without NUL.  A name that is no UTF-8
	 * is empty. */
	struct buf name;
	struct buf filename;
	bool is_file; /* it has a filename */
	/* To be set once it is open: the folders of a path of Windows are a
	 * part of the name. */
	bool whole_names;
	/* Of the present slice, until the next call. */
	const char *data;
	size_t data_len;

	/* Private members follow. */
	enum multipart_state state;
	enum multipart_event event;
	const char *error;			    /* NULL: not failed */
	char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* "\r\n--boundary" */
	size_t delimiter_len;
	struct buf held; /* bytes that no event has had yet */
	size_t used;	 /* of it, by events */
	size_t field_len;
	size_t parts[2]; /* fields, and files */
	bool preamble;	 /* there was one, not just empty lines */
};

/* A body of another type, or of none (NULL), has no parts.  False:
 * MULTIPART_MISSING_BOUNDARY, and nothing to release. */
bool multipart_open(struct multipart *m, const char *content_type);
void multipart_release(struct multipart *m);
/* The next bytes of the body, as they come; then ask for events until MORE is
 * the answer. */
void multipart_add(struct multipart *m, const void *data, size_t len);
enum multipart_event multipart_next(struct multipart *m);
/* The body has ended.  NULL: it was whole; else why not, for the client. */
const char *multipart_end(struct multipart *m);

#endif
