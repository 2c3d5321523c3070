/* SPDX-License-Identifier: MIT */
#ifndef EXECUTE_MESSAGE_H
#define EXECUTE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/json.h"
#include "contract/multipart.h"
#include "contract/run_files.h"

#include "base/basics.h"
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

/* Refuse with a text.  Always false. */
bool detail_refuse(struct detail *d, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

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
 * why it cannot be (static); as an answer that is detail_refuse(d, 422, …). */
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

/* ---- answers ---- */

/* One stream of a run, of which so many bytes are taken: collected, or reported
 * as they come. */
struct capture {
	const char *name; /* "stdout" or "stderr" */
	size_t left;	  /* bytes that it still takes */
	/* Where it is collected, to be released.  In an answer the text of a
	 * stream that had more is cut as the contract says: to 32 bytes less,
	 * and "\n...[truncated]". */
	struct buf text;
	bool over;
	struct utf8_decoder decoder; /* of a stream */
};
/* clang-format off */
#define CAPTURE_INIT(stream, max) \
	{ .name = (stream), .left = (max), .text = BUF_INIT(max) }
/* clang-format on */

void capture_add(struct capture *c, const void *data, size_t len);

struct execute_result {
	const struct capture *out;
	const struct capture *err;
	const struct cell_result *cell;
	int64_t duration_ms;
	/* NULL: an answer without `files`.  Files that are not in the store
	 * were left out.  Paths are as they are told. */
	const struct run_files *files;
	bool extras;
};

/* Append the JSON of ExecuteResponse, or of BashExecResponse. */
void execute_answer(struct buf *out, const struct execute_result *result);
/* More than it can append, with as many files as a cell may tell of. */
#define EXECUTE_ANSWER_MAX ((size_t)64 << 20)

/* Append {"session_id":…,"expires_at":…}; expiry in wall clock milliseconds. */
void execute_add_session(struct buf *out, const char *id, int64_t expires_ms);
/* Append {"file_id":…,"filename":…,"size_bytes":…} of a file of /v1/files, with
 * "upload_time":… as in a list; -1: without.  name: UTF-8; the time is on the
 * wall clock. */
void execute_add_file(struct buf *out, const char *id, const char *name,
    int64_t size, int64_t uploaded_ms);

/* ---- as a stream ---- */

/*
 * The frames of /v1/execute/stream: "event: …\ndata: <JSON>\n\n".  Their JSON
 * is ASCII, since there are clients that take U+0085 and U+2028 for the end of
 * a line.
 */
#define SSE_TYPE "text/event-stream; charset=utf-8"
#define SSE_HEADERS \
	"Cache-Control: no-cache\r\n" \
	"Connection: keep-alive\r\n" \
	"X-Accel-Buffering: no\r\n"

/* Append the frame of what came, or of what is left (data NULL): nothing, where
 * there is no character. */
void sse_add_output(struct buf *out, struct capture *c, const void *data,
    size_t len);

/* The last frame: how the run ended, or why there is no end.  text: UTF-8. */
void sse_add_result(struct buf *out, const struct execute_result *result);
void sse_add_error(struct buf *out, const char *text);

#endif
