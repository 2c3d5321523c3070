/* SPDX-License-Identifier: MIT */
#ifndef MCP_PICTURE_H
#define MCP_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Pictures that may be put before a model.  A picture stays in the
 * conversation: one that the model's API refuses makes every later request of
 * that conversation fail.  So a picture is sent only if it is whole.
 *
 * The functions read the structure of a file, not its pixels: lengths of
 * chunks, checksums of PNG, marks of the end.
 */
#define MCP_PICTURE_SIDE 2000	 /* pixels of width and of height */
#define MCP_PICTURE_BYTES 700000 /* 1 MiB as base64, with what is around it */

/* The type of a picture by its first bytes, static; NULL: it is none. */
const char *mcp_picture_type(const char *data, size_t len);
/* Why a file of that type must not be shown, in ASCII, static; NULL: it may be.
 * The type of a file that is no whole picture becomes that of any bytes. */
const char *mcp_picture_fault(const char **type, const char *data, size_t len);
#define MCP_PICTURE_TOO_LONG "it has over 700,000 bytes"

#endif
