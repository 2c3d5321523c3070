/* SPDX-License-Identifier: MIT */
#ifndef EXECUTE_ANSWER_H
#define EXECUTE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/outcome.h"
#include "contract/utf8_decoder.h"

#include "base/buf.h"

struct cell_result;

/* The answers of the code-interpreter routes, but for their errors. */

/* One stream of a run, of which so many bytes are taken: kept, or told as they
 * come. */
struct capture {
	const char *name; /* "stdout" or "stderr" */
	size_t left;	  /* bytes that it still takes */
	/* Where it is kept, to be released; once it has ended, the inside of a
	 * JSON string.  Text that is longer than the bound is cut as the
	 * contract says: to 32 bytes less, and "\n...[truncated]". */
	struct buf text;
	size_t at; /* execute_answer() */
	bool over;
	struct utf8_decoder decoder; /* of a stream */
};
/* A byte may become "\u001b". */
/* clang-format off */
#define CAPTURE_INIT(stream, max) \
	{ .name = (stream), .left = (max), .text = BUF_INIT(6 * (max) + 32) }
/* clang-format on */

void capture_add(struct capture *c, const void *data, size_t len);
/* Nothing more comes. */
void capture_end(struct capture *c);

struct execute_result {
	struct capture *out;
	struct capture *err;
	const struct cell_result *cell;
	int64_t duration_ms;
	/* NULL: an answer without `files`.  Files that are not in the store
	 * were left out.  Paths are as they are told. */
	const struct run_files *files;
	bool extras;
};

/* Append the JSON of ExecuteResponse, or of BashExecResponse, without the texts
 * of the streams, each of which belongs where it sets the capture's `at`: that
 * of out comes first.  The length with them. */
size_t execute_answer(struct buf *out, const struct execute_result *result);
/* More than it can append, with as many files as a cell may tell of. */
#define EXECUTE_ANSWER_MAX ((size_t)32 << 20)

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

/* Append the frame of what came; nothing, where there is no whole character. */
void sse_add_output(struct buf *out, struct capture *c, const void *data,
    size_t len);
/* The stream ends: what is left of it, if anything. */
void sse_add_rest(struct buf *out, struct capture *c);

/* The last frame: how the run ended, or why there is no end.  text: UTF-8. */
void sse_add_result(struct buf *out, const struct execute_result *result);
void sse_add_error(struct buf *out, const char *text);

#endif
