/* SPDX-License-Identifier: MIT */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "contract/json.h"

#include "protocol/cell.h"

struct buf;
struct mcp_fault;
struct mcp_message;

/*
 * The tools that a model is offered: one table says what `tools/list` tells of
 * their arguments, and how the arguments of a call are checked.
 */
enum mcp_tool {
	MCP_RUN_PYTHON,
	MCP_RUN_SHELL,
	MCP_CREATE_SESSION,
	MCP_CLOSE_SESSION,
	MCP_LIST_FILES,
	MCP_READ_FILE,
	MCP_WRITE_FILE,
	MCP_TOOLS,
};

#define MCP_TIMEOUT_S 30 /* of a run that says none */
#define MCP_TIMEOUT_MAX_S 120
#define MCP_TTL_S 900
#define MCP_TTL_MAX_S 86400
#define MCP_FILES_MAX 100 /* of a call */
#define MCP_ARGS_MAX 64
#define MCP_ARGS_BYTES 16384   /* together */
#define MCP_COMMAND_MAX 100000 /* bytes: what fits into one word */
#define MCP_READ_BYTES 20000   /* of a file, when nothing is said */
#define MCP_READ_MAX (1 << 20)

/* A file that a run gets: content, or the id of one in the store. */
struct mcp_file {
	struct cell_bytes path; /* as a cell takes it: relative, normalised */
	struct cell_bytes content;
	struct cell_bytes base64; /* as it was sent */
	struct cell_bytes id;
};

/* The arguments of a call.  All text is UTF-8, and a NUL follows it; data NULL:
 * it was not given.  Everything lives as long as the message. */
struct mcp_call {
	enum mcp_tool tool;
	struct cell_bytes code;	   /* or the command, without NUL */
	struct cell_bytes input;   /* standard input */
	struct cell_bytes session; /* without NUL */
	struct cell_bytes python;  /* one of those on offer */
	struct cell_bytes path;	   /* relative, normalised, without NUL */
	struct cell_bytes content; /* to be written */
	bool path_decoded;	   /* path_text_read() has read it */
	struct cell_bytes base64;  /* of the content, as it was sent */
	struct field_list files;   /* struct mcp_file */
	struct field_list args;
	const char **argv; /* of args; ends with NULL; NULL: none */
	int64_t timeout_s;
	int64_t ttl_s;
	int64_t offset;
	int64_t limit;
};

enum mcp_verdict {
	MCP_CALL_FINE,
	MCP_CALL_FAULT,	   /* the fault is the answer */
	MCP_CALL_MENDABLE, /* the model is told why, one line of UTF-8 */
};

/* The tools as clients list them, in the order of enum mcp_tool, with these
 * names of interpreters, which NULL ends.  The caller owns them. */
json_t *mcp_tools_read(const char *const *interpreters);

/* Read a `tools/call`, and check its arguments by the list of the tools. */
enum mcp_verdict mcp_call_parse(struct mcp_call *call, struct mcp_message *m,
    const json_t *tools, struct mcp_fault *fault, struct buf *why);

/* Append the list of all tools: [{…},…]. */
void mcp_add_tools(struct buf *out, const json_t *tools);

#endif
