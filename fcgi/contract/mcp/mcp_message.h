/* SPDX-License-Identifier: MIT */
#ifndef MCP_MESSAGE_H
#define MCP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "../../pytext/pyjson_tree.h"

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
	const struct pyvalue *id;	/* of a request: text or integer */
	const struct pyvalue *params;	/* an object; NULL: none */
	const struct pyvalue *progress; /* its token; NULL: none is wanted */
	bool links; /* the client knows content of the type resource_link */
	struct pyjson doc; /* owns all of these */
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
	const struct pyvalue *asked; /* MCP_BAD_VERSION: the version, a text */
	const struct pyvalue *uri;   /* of a resource; NULL: not about one */
};

/* Read a message that a NUL follows.  False: the fault is the answer, to m->id
 * where that could be read (else NULL).  m is to be released either way. */
bool mcp_message_parse(struct mcp_message *m, const struct mcp_head *head,
    const char *body, size_t len, struct mcp_fault *fault);
void mcp_message_release(struct mcp_message *m);

/* Fill in a fault; always false.  Of a request in the legacy era the status is
 * 200 where the modern one has 400 or 404. */
bool mcp_refuse(struct mcp_fault *fault, int status, enum mcp_code code,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool mcp_refuse_request(const struct mcp_message *m, struct mcp_fault *fault,
    int status, enum mcp_code code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* The versions that are offered, the newest first, as JSON: ["…",…]. */
void mcp_add_versions(struct buf *out);
/* Which version `initialize` is answered with. */
const char *mcp_negotiate(const struct mcp_message *m);

/* A member of an object; NULL: there is none, or it is no object, or NULL. */
const struct pyvalue *mcp_member(const struct pyvalue *object,
    const char *name);
/* A value is that text; NULL is none. */
bool mcp_is_text(const struct pyvalue *value, const char *text);

#endif
