/* SPDX-License-Identifier: MIT */
#ifndef EXECUTE_REQUEST_H
#define EXECUTE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/fields.h"
#include "contract/multipart.h"

#include "base/buf.h"
#include "protocol/cell.h"

/*
 * Refusal of the code-interpreter routes: {"detail": …}.  The detail is a text
 * or, where a body is not as it must be, a list of one error: "type", "loc",
 * "msg" and "input", as clients of FastAPI know them.  `body` is the whole
 * answer, in UTF-8, and to be released.
 */
struct detail {
	int status;
	struct buf body;
};

/* Refuse with a text, which may hold anything, NUL too.  Always false. */
bool detail_bytes(struct detail *d, int status, const char *text, size_t len);

/*
 * The requests of the code-interpreter routes, from bytes to something typed.
 * The checks come in this order: the fields (422), the time limit (422),
 * whether the files exist (404, in order; the caller asks its store), their
 * paths (422). Texts are valid UTF-8; a NUL follows each, and more may be
 * inside.
 */

struct execute_file {
	struct cell_bytes path; /* as it was sent */
	struct cell_bytes id;	/* not checked: the store knows its own */
};

enum execute_route {
	EXECUTE_CODE,	 /* POST /v1/execute and /v1/execute/stream */
	EXECUTE_SESSION, /* POST /v1/sessions */
	EXECUTE_BASH,	 /* POST /v1/sessions/…/bash */
};

/* Members that a route does not know are zero. */
struct execute_request {
	struct cell_bytes code;	 /* or the command, which has no NUL */
	struct cell_bytes input; /* data NULL: empty */
	int64_t timeout_ms;	 /* of code and commands */
	int64_t ttl_seconds;	 /* of a session */
	bool echo;		 /* of code */
	struct field_list files; /* struct execute_file: code and sessions */
	struct jtree doc;	 /* owns all of these; to be released */
};

/* False: answer with the detail, which is to be released then; the document is
 * to be released on true only.  content_type NULL: none was sent.  A NUL
 * follows the body. */
bool execute_parse(struct execute_request *req, enum execute_route route,
    const char *content_type, const char *body, size_t len, struct detail *d);

/* The store does not have this one: 404.  Always false. */
bool execute_refuse_file(const struct execute_file *file, struct detail *d);
/* Check the paths, one after the other, and set those to write to; inputs: an
 * element for each file.  With code the path "__main__.py" is taken.  NULL, or
 * why it cannot be (static); as an answer that is detail_text(d, 422, …). */
const char *execute_stage(struct execute_request *req,
    struct cell_input *inputs);

/*
 * POST /v1/files: the field `file` of a form, as it comes.  If several parts
 * have that name, the last one counts.  Bytes past the bound are read and
 * dropped.
 */
struct upload {
	struct multipart form; /* takes the bytes: multipart_add() */
	int64_t max;	       /* bytes of a file */
	int64_t size;
	bool into;	 /* the present part has that name */
	bool have;	 /* there is a file, and nothing took its place */
	struct buf name; /* the file's; "unnamed" where it has none */
};

/* False: the detail is the answer, and there is nothing to release. */
bool upload_open(struct upload *up, const char *content_type, int64_t max,
    struct detail *d);
void upload_release(struct upload *up);
/* A part begins.  Any part called "file" takes the place of an earlier one.
 * True: it is a file. */
bool upload_begin(struct upload *up);
/* A slice has come.  True: it is the file's, and within the bound. */
bool upload_count(struct upload *up);
/* The body has ended, or failed.  True: the form has a file, whose name and
 * size are set.  False: the detail is the answer (400, 413, 422). */
bool upload_end(struct upload *up, struct detail *d);

#endif
