/* SPDX-License-Identifier: MIT */
#ifndef MCP_OUTPUT_H
#define MCP_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../sandbox/base/buf.h"

/*
 * What a run prints, as much of it as a model is to read: its beginning and its
 * end, as an error stands at the end.
 */
#define MCP_HEAD_BYTES 12000
#define MCP_TAIL_BYTES 8000

struct mcp_output {
	struct buf head; /* to be released, as the next */
	struct buf tail;
	int64_t total; /* bytes that came */
};
/* clang-format off */
#define MCP_OUTPUT_INIT \
	{ .head = BUF_INIT(MCP_HEAD_BYTES), \
	  .tail = BUF_INIT((size_t)2 * MCP_TAIL_BYTES) }
/* clang-format on */

void mcp_output_add(struct mcp_output *o, const void *data, size_t len);
void mcp_output_release(struct mcp_output *o);
/* Was something left out? */
bool mcp_output_is_cut(const struct mcp_output *o);
/* Append it as UTF-8, with U+FFFD for what is none, and with a line that says
 * how much was left out where that was. */
void mcp_output_text(struct buf *out, const struct mcp_output *o);
#define MCP_OUTPUT_TEXT_MAX \
	((size_t)3 * (MCP_HEAD_BYTES + MCP_TAIL_BYTES) + 200)

/* The last line that is not empty, at most max bytes of it, for progress. */
void mcp_output_last_line(struct buf *out, const struct mcp_output *o,
    size_t max);

#endif
