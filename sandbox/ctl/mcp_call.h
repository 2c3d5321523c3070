/* SPDX-License-Identifier: MIT */
#ifndef MCP_CALL_H
#define MCP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <curl/curl.h>
#include <jansson.h>

#include "../base/buf.h"

struct err;

/*
 * One message of the Model Context Protocol on its way to a running Inline, and
 * what comes back of it, which goes to standard output, a line for each.
 */
#define MCP_URL "http://127.0.0.1:8080/mcp"

struct mcp_server {
	const char *url;     /* NULL: MCP_URL */
	char *authorization; /* heap: a header; NULL: none */
	char version[32];    /* that `initialize` has agreed on; "": none yet */
};

struct mcp_call {
	LIST_ENTRY(mcp_call) link;
	CURL *easy;
	struct curl_slist *headers;
	json_t *id; /* of a request; NULL: nobody waits for an answer */
	bool initialize;
	bool answered;
	bool known; /* what follows is, as the answer has begun */
	bool stream;
	char *body;	   /* heap */
	struct buf answer; /* of a stream: the line that is coming in */
};
LIST_HEAD(mcp_calls, mcp_call);

/* The token: in the file's first line, else in INLINE_MCP_TOKEN, or there is
 * none. */
int mcp_server_open(struct mcp_server *server, const char *token_file,
    struct err *err);
void mcp_server_close(struct mcp_server *server);

/* The text is copied.  message: it as JSON; NULL: it is none. */
struct mcp_call *mcp_call_new(const struct mcp_server *server,
    const json_t *message, const char *text, size_t len);
/* All of the answer has come, or there is none: who waits is told. */
void mcp_call_end(struct mcp_server *server, struct mcp_call *call,
    CURLcode result);
void mcp_call_free(struct mcp_call *call);

#endif
