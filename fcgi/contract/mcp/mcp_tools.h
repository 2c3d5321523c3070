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
struct mcp_message;

/*
 * The tools that a model is offered: clients list mcp_list.json, and the
 * arguments of a call are checked by it.
 */
enum mcp_tool {
	MCP_RUN_PYTHON,
	MCP_RUN_SHELL,
	MCP_CREATE_SESSION,
	MCP_CLOSE_SESSION,
	MCP_LIST_FILES,
	MCP_READ_FILE,
	MCP_WRITE_FILE,
};

/* As mcp_list.json has them. */
#define MCP_TIMEOUT_MAX_S 120
#define MCP_READ_MAX (1 << 20)

#define MCP_ARGS_BYTES 16384   /* together */
#define MCP_COMMAND_MAX 100000 /* bytes: what fits into one word */

/* A file that a run gets, or that is read or written: its content, or the id of
 * one in the store. */
struct mcp_file {
	struct cell_bytes path; /* as a cell takes it: relative, normalised */
	bool decoded;		/* path_text_read() has read the path */
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
	struct mcp_file file;	   /* its path: "" if none was given */
	struct field_list files;   /* struct mcp_file */
	struct field_list args;
	const char **argv; /* of args; ends with NULL; NULL: none */
	int64_t timeout_s;
	int64_t ttl_s;
	int64_t offset;
	int64_t limit;
};

/* The results of mcp_list.json by their methods: the tools in the order of enum
 * mcp_tool, with these names of interpreters, which NULL ends.  The caller owns
 * them. */
json_t *mcp_list_read(const char *const *interpreters);

/* Read a `tools/call`, and check its arguments by that list.
 * False: `why` is for the model, one line of UTF-8; if that is empty, m->error
 * is the answer. */
bool mcp_call_parse(struct mcp_call *call, struct mcp_message *m,
    const json_t *list, struct buf *why);

#endif
