/* SPDX-License-Identifier: MIT */
#ifndef MCP_MESSAGE_H
#define MCP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/json.h"

struct buf;

/*
 * One message of the Model Context Protocol, as a POST brings it: JSON-RPC 2.0,
 * checked against the headers that came with it.  Two camps are understood on
 * one path.  "Legacy" clients (protocol 2025-03-26 to 2025-11-25) begin with
 * `initialize`; "modern" ones (2026-07-28) say in every request which version
 * they speak and what they can, in params._meta, and repeat it in headers.
 */
#define MCP_VERSION_MODERN "2026-07-28"
#define MCP_VERSION_LEGACY "2025-11-25" /* the newest of them */

enum mcp_era { MCP_NO_ERA, MCP_LEGACY = 1, MCP_MODERN = 2 };

/* Bytes of what an answer repeats: an id, a token of progress, a version. */
#define MCP_ECHO_MAX 1024

enum mcp_kind {
	MCP_REQUEST,
	MCP_NOTIFICATION, /* or a response: neither is answered */
};

enum mcp_method {
	MCP_INITIALIZE, /* legacy alone, as the next */
	MCP_PING,
	MCP_DISCOVER, /* modern alone */
	MCP_TOOLS_LIST,
	MCP_TOOLS_CALL,
	MCP_RESOURCES_LIST,
	MCP_TEMPLATES_LIST,
	MCP_RESOURCES_READ,
	MCP_METHODS,
};

/* Headers; NULL: not sent. */
struct mcp_head {
	const char *content_type;
	const char *version; /* MCP-Protocol-Version */
	const char *method;  /* Mcp-Method */
	const char *name;    /* Mcp-Name */
};

/* All zero there is no message yet, and nothing to release. */
struct mcp_message {
	enum mcp_kind kind;
	enum mcp_era era; /* of a request that is to be answered */
	enum mcp_method method;
	const json_t *id;	/* of a request: text or integer */
	const json_t *params;	/* an object; NULL: none */
	const json_t *progress; /* its token; NULL: none is wanted */
	bool links;    /* the client knows content of the type resource_link */
	json_t *error; /* the answer instead of a result; NULL: none */
	int status;    /* of HTTP, with an error */
	struct jtree doc; /* owns id, params and progress */
};

/* The codes of JSON-RPC, then those of the protocol. */
enum mcp_code {
	MCP_NOT_JSON = -32700,
	MCP_NO_REQUEST = -32600,
	MCP_NO_METHOD = -32601,
	MCP_BAD_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_NO_RESOURCE = -32002, /* legacy */
	MCP_BAD_HEADER = -32020,
	MCP_BAD_VERSION = -32022,
};

/* Read a message that a NUL follows.  False: m->error is the answer, to m->id
 * where that could be read (else NULL).  m is to be released either way. */
bool mcp_message_parse(struct mcp_message *m, const struct mcp_head *head,
    const char *body, size_t len);
void mcp_message_release(struct mcp_message *m);

/* Set the error; always false.  In the legacy era the status is 200.  data: the
 * error's own, which is taken over; NULL: none. */
bool mcp_refuse(struct mcp_message *m, int status, enum mcp_code code,
    json_t *data, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The result of a method that is always answered with the same; list: of
 * mcp_list_read().  NULL: it is another method. */
json_t *mcp_pack_constant(const struct mcp_message *m, const json_t *list);

/*
 * Messages to the client.  All JSON is ASCII on one line, since the clients of
 * a stream differ in what they take for the end of a line.
 */

/* The bytes of a value in such a message. */
size_t mcp_json_size(const json_t *value);
/* Append the answer: the result, which is released, or if it is NULL the
 * error. */
void mcp_add_answer(struct buf *out, const struct mcp_message *m,
    json_t *result);
/* Append a notification: ms of total_ms are over, which is to grow from one to
 * the next.  text: UTF-8. */
void mcp_add_progress(struct buf *out, const struct mcp_message *m, int64_t ms,
    int64_t total_ms, const struct buf *text);

#endif
