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

#define MCP_META "io.modelcontextprotocol/"

enum mcp_era { MCP_LEGACY, MCP_MODERN };

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

struct mcp_message {
	enum mcp_kind kind;
	enum mcp_era era;
	enum mcp_method method;
	const json_t *id;	/* of a request: text or integer */
	const json_t *params;	/* an object; NULL: none */
	const json_t *progress; /* its token; NULL: none is wanted */
	bool links; /* the client knows content of the type resource_link */
	struct jtree doc; /* owns all of these */
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

#define MCP_TEXT_MAX 300

/* Why it is not answered with a result. */
struct mcp_fault {
	int status; /* of HTTP */
	enum mcp_code code;
	char text[MCP_TEXT_MAX];
	const json_t *asked; /* MCP_BAD_VERSION: the version, a text */
	const json_t *uri;   /* of a resource; NULL: not about one */
};

/* Read a message that a NUL follows.  False: the fault is the answer, to m->id
 * where that could be read (else NULL).  m is to be released either way. */
bool mcp_message_parse(struct mcp_message *m, const struct mcp_head *head,
    const char *body, size_t len, struct mcp_fault *fault);
void mcp_message_release(struct mcp_message *m);

/* Fill in a fault; always false.  In the legacy era the status is 200 where the
 * modern one has 400 or 404.  m NULL: the era is not known yet. */
bool mcp_refuse(struct mcp_fault *fault, const struct mcp_message *m,
    int status, enum mcp_code code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* The version that `initialize` is answered with. */
const char *mcp_negotiate(const struct mcp_message *m);

/*
 * Answers.  All JSON is ASCII on one line, since the clients of a stream differ
 * in what they take for the end of a line.
 */

/* A whole result is mcp_begin(), members each with a comma before it, and
 * mcp_end().  ttl_ms: how long a client of the modern era may keep it; -1: it
 * is not told.  shared: it is the same for all clients. */
void mcp_begin(struct buf *out, const struct mcp_message *m, int64_t ttl_ms,
    bool shared);
void mcp_end(struct buf *out);
#define MCP_NOT_KEPT (-1)

/* A whole error.  id NULL: null. */
void mcp_add_error(struct buf *out, const json_t *id,
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
/* The event of notifications/progress: ms of total_ms are over, which is to
 * grow from one to the next.  text: UTF-8. */
void mcp_add_progress(struct buf *out, const json_t *token, int64_t ms,
    int64_t total_ms, const char *text, size_t len);

/* ---- parts ---- */

/* Append a text with its quotes; bytes that are no UTF-8 become U+FFFD. */
void mcp_add_text(struct buf *out, const char *s, size_t len);
/* The length of the beginning of a text that takes at most `room` bytes there,
 * without its quotes.  It ends with a whole character. */
size_t mcp_fit_text(const char *s, size_t len, size_t room);
/* Append a value as it came; NULL: null. */
void mcp_add_value(struct buf *out, const json_t *value);

#endif
