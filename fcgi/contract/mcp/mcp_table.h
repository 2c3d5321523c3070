/* SPDX-License-Identifier: MIT */
#ifndef MCP_TABLE_H
#define MCP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How the table of the tools is built: between mcp_tools.c, which has it, and
 * mcp_call.c, which checks calls by it.  All texts are ASCII without '"' and
 * '\'.
 */
enum mcp_rule_kind {
	MCP_RULE_TEXT, /* any text of at most max bytes */
	MCP_RULE_WORD, /* the same without NUL, and not empty */
	MCP_RULE_PATH,
	MCP_RULE_BASE64,
	MCP_RULE_INT, /* from min to max */
	MCP_RULE_PYTHON,
	MCP_RULE_ARGS,
	MCP_RULE_FILES,
};

/* An argument, and where in struct mcp_call its value goes. */
struct mcp_rule {
	const char *name;
	enum mcp_rule_kind kind;
	size_t offset;
	bool required;
	int64_t standard; /* of what is not there */
	int64_t min;
	int64_t max;
	const char *help; /* for the model */
};

#define MCP_RULES_MAX 8

struct mcp_tool_row {
	const char *name;
	const char *title;
	const char *help;
	const struct mcp_rule *rules[MCP_RULES_MAX]; /* ends with NULL */
	const char *result; /* schema of structuredContent */
	bool reads;	    /* it changes nothing */
	bool destroys;
	bool idempotent;
	bool long_answer; /* it may have over 50,000 characters */
};

extern const struct mcp_tool_row mcp_tool_rows[]; /* MCP_TOOLS of them */

#endif
