/* SPDX-License-Identifier: MIT */
#ifndef MCP_ANSWER_H
#define MCP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../pytext/pyjson_tree.h"

struct buf;
struct mcp_fault;
struct mcp_message;

/*
 * What is said back.  All JSON is ASCII on one line, since the clients of a
 * stream differ in what they take for the end of a line.
 */

/* A whole result is mcp_begin(), members each with a comma before it, and
 * mcp_end().  ttl_ms: how long a client of the modern era may keep it; -1: it
 * is not told.  shared: it is the same for whoever asks. */
void mcp_begin(struct buf *out, const struct mcp_message *m, int64_t ttl_ms,
    bool shared);
void mcp_end(struct buf *out);
#define MCP_NOT_KEPT (-1)

/* A whole error.  id NULL: null. */
void mcp_add_error(struct buf *out, const struct pyvalue *id,
    const struct mcp_fault *fault);

/* Whole results: of `initialize`, `server/discover` and `ping`, which is
 * legacy and empty. */
void mcp_add_initialize(struct buf *out, const struct mcp_message *m);
void mcp_add_discover(struct buf *out, const struct mcp_message *m);
void mcp_add_ping(struct buf *out, const struct mcp_message *m);

/* ---- a stream ---- */

/* The event of a message that is JSON on one line. */
void mcp_add_event(struct buf *out, const char *json, size_t len);
/* A line that says nothing: the connection is alive. */
void mcp_add_comment(struct buf *out);
/* The event of notifications/progress: so many milliseconds of total_ms are
 * over, which is to grow from one to the next.  text: UTF-8. */
void mcp_add_progress(struct buf *out, const struct pyvalue *token, int64_t ms,
    int64_t total_ms, const char *text, size_t len);

/* ---- parts ---- */

/* A text with its quotes; what is no UTF-8 becomes U+FFFD. */
void mcp_add_text(struct buf *out, const char *s, size_t len);
/* How much of a text takes at most `room` bytes in there, its quotes aside: up
 * to the end of a character. */
size_t mcp_fit_text(const char *s, size_t len, size_t room);
/* A text or an integer, as it came. */
void mcp_add_value(struct buf *out, const struct pyvalue *value);

#endif
