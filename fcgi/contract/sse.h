/* SPDX-License-Identifier: MIT */
#ifndef SSE_H
#define SSE_H

#include <stddef.h>

#include "../pytext/pyutf8.h"

struct buf;
struct execute_result;

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

/* One stream of a run: decoded piece by piece, silent after `max` bytes. */
struct sse_stream {
	const char *name; /* "stdout" or "stderr" */
	size_t left;
	struct pyutf8 decoder;
};

void sse_stream_init(struct sse_stream *s, const char *name, size_t max);
/* Append the frame of what came; nothing, where there is no whole character. */
void sse_add_output(struct buf *out, struct sse_stream *s, const void *data,
    size_t len);
/* The stream ends: what is left of it, if anything. */
void sse_add_rest(struct buf *out, struct sse_stream *s);

/* The last frame: how the run ended, or why there is no end.  text: UTF-8. */
void sse_add_result(struct buf *out, const struct execute_result *result);
void sse_add_error(struct buf *out, const char *text);

#endif
