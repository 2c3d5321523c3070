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

#include "base/buf.h"

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
	int place;	      /* of what may be done at one time; -1: none */
	int reader;	      /* one of MCP_READERS; -1: it is none */
	bool may_stream;
	bool must_stream; /* the client takes nothing else */
	int64_t began_ms; /* all of the monotonic clock */
	int64_t told_ms;  /* when the client had its last byte */
};

/* So much may wait and run at one time, over all processes, and so many are
 * beside them, for what is answered at once. */
#define MCP_WAITING 8
#define MCP_QUICK 4
/* Who reads what is large may be slow: the most of those places that they have,
 * or nobody could run anything. */
#define MCP_READERS 4
size_t mcp_children(const struct config *config);

/* A cell is waited for so long, and a turn in a session: then the model is told
 * to come again, before its client gives up. */
#define MCP_WAIT_MS 25000
#define MCP_TURN_MS 10000

/* ---- the answer ---- */

/* Send what is in x->body. */
void mcp_send(struct mcp_exchange *x);
/* Tell the model what it can do about it: the result of a tool. */
void mcp_trouble(struct mcp_exchange *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void mcp_busy(struct mcp_exchange *x);
/* Something of ours has failed; the log says what. */
void mcp_failed(struct mcp_exchange *x);
/* An error of the protocol. */
void mcp_fault(struct mcp_exchange *x, const struct mcp_fault *fault);
/* Tell the client of progress while a run goes on; a stream begins for it, if
 * it may.  ms: the time since the run began, -1: it has not.  text: of
 * progress. */
void mcp_tell(struct mcp_exchange *x, int64_t ms, int64_t total_ms,
    const struct buf *text);
/* Take a place, and of the token's what the gate counts.  False: there is none,
 * which was answered. */
bool mcp_enter(struct mcp_exchange *x, enum gate_use use);

/* ---- what is called ---- */

void mcp_run_tool(struct mcp_exchange *x);
void mcp_session_tool(struct mcp_exchange *x);

/* ---- a session's cell ---- */

struct cell_event;
struct cell_request;
struct api_run;

struct session_borrowed;

/* False: it was answered. */
bool mcp_borrow(struct mcp_exchange *x, struct session_borrowed *b);
/* One request to it: its result, and what the event function takes of it.
 * False: the cell is lost. */
bool mcp_ask(struct mcp_exchange *x, struct session_borrowed *b,
    const struct cell_request *request,
    void (*event)(void *arg, const struct cell_event *event), void *arg,
    struct cell_result *result);
/* The model is told why an operation on files has failed. */
void mcp_explain(struct mcp_exchange *x, const struct cell_result *result);

#endif
