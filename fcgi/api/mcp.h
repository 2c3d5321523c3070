/* SPDX-License-Identifier: MIT */
#ifndef MCP_H
#define MCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/gate.h"
#include "contract/mcp/mcp_message.h"
#include "contract/mcp/mcp_result.h"
#include "contract/mcp/mcp_tools.h"

#include "base/basics.h"

struct api_app;
struct config;
struct http_request;

/*
 * One message of POST /mcp and its answer, which is one JSON object, or a
 * stream of events that ends with it: where the client wants to be told of
 * progress, or waits long.
 */
struct mcp_exchange {
	struct api_app *app;
	struct http_request *req;
	struct mcp_message m;
	struct mcp_call call; /* of MCP_TOOLS_CALL */
	struct buf body;      /* the answer, as it is made */
	int slot;	      /* one of all calls at one time; -1: none */
	int reader;	      /* one of MCP_READERS; -1: none */
	bool may_stream;
	bool must_stream; /* the client takes nothing else */
	int64_t began_ms; /* both of the monotonic clock */
	int64_t told_ms;  /* when the last byte was sent */
};

/* Calls that may wait beside those that run, over all processes; and further
 * processes, for messages that are answered at once. */
#define MCP_WAITING 8
#define MCP_QUICK 4
/* Readers of resources may be slow.  They have at most so many of these slots,
 * so others can still run code. */
#define MCP_READERS 4
size_t mcp_children(const struct config *config);

/* Longest waits for a cell, and for a turn in a session.  The model is then
 * told to try again, before its client gives up. */
#define MCP_WAIT_MS 25000
#define MCP_TURN_MS 10000

/* ---- the answer ---- */

/* Send what is in x->body. */
void mcp_send(struct mcp_exchange *x);
/* A tool's result that tells the model what to do about a problem. */
void mcp_trouble(struct mcp_exchange *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mcp_busy(struct mcp_exchange *x);
/* A fault of Inline's; the log says which. */
void mcp_failed(struct mcp_exchange *x);
/* An error of the protocol. */
void mcp_fault(struct mcp_exchange *x, const struct mcp_fault *fault);
/* Report progress of a run to the client; a stream begins for it, if allowed.
 * ms: the time since the run began, -1: it has not.  text: of the progress. */
void mcp_tell(struct mcp_exchange *x, int64_t ms, int64_t total_ms,
    const struct buf *text);
/* Claim a slot of all calls and one of the token's.  False: there is none,
 * which was answered. */
bool mcp_enter(struct mcp_exchange *x, enum gate_use use);

/* ---- tools ---- */

void mcp_run_tool(struct mcp_exchange *x);

/* ---- a session's cell ---- */

struct cell_event;
struct cell_request;
struct api_run;

struct lease;

void mcp_no_session(struct mcp_exchange *x);
/* False: it was answered. */
bool mcp_resume(struct mcp_exchange *x, struct lease *b);
/* Send one request to the cell; the event function gets its events.  False: the
 * cell is lost. */
bool mcp_ask(struct mcp_exchange *x, struct lease *b,
    const struct cell_request *request,
    void (*event)(void *arg, const struct cell_event *event), void *arg,
    struct cell_result *result);
/* Tell the model why an operation on files has failed. */
void mcp_explain(struct mcp_exchange *x, const struct cell_result *result);

#endif
