/* SPDX-License-Identifier: MIT */
#ifndef MCP_H
#define MCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/mcp/mcp_message.h"

struct api_app;
struct buf;
struct config;
struct http_request;

/*
 * One message of POST /mcp and its answer, which is one JSON object, or a
 * stream of events that ends with it: where the client wants reports of
 * progress, or waits long.
 */
struct mcp_exchange {
	struct api_app *app;
	struct http_request *req;
	struct mcp_message m;
	int slot;   /* one of all calls at one time; -1: none */
	int reader; /* one of those that read resources; -1: none */
	bool may_stream;
	bool must_stream; /* the client takes nothing else */
	bool passed_on;	  /* another node answers */
	int64_t began_ms; /* both of the monotonic clock */
	int64_t sent_ms;  /* when the last byte was sent */
};

/* Processes for /mcp. */
size_t mcp_children(const struct config *config);

#define MCP_BUSY "Inline is busy: nothing was run. Try again in a few seconds."

/* Claim a slot of all calls.  False: they are in use. */
bool mcp_claim_slot(struct mcp_exchange *x);
/* Report progress of a run to the client; a stream begins for it, if allowed.
 * ms: the time since the run began, -1: it has not.  text: of the progress. */
void mcp_report_progress(struct mcp_exchange *x, int64_t ms, int64_t total_ms,
    const struct buf *text);

/* ---- mcp_call.c ---- */

/* Answer tools/call: the result, to be released.  NULL: the message has the
 * error, or the client is gone, or another node answers. */
json_t *mcp_call_tool(struct mcp_exchange *x);

#endif
