/* SPDX-License-Identifier: MIT */
#ifndef MCP_MEDIA_H
#define MCP_MEDIA_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

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

/*
 * The type of a file by its first bytes and its name, and the URI by which a
 * client asks for one of the store: inline://files/<id>/<name>.
 */

/* Its media type, static.  Pictures are known by their bytes alone, so
 * that nothing else is shown as one. */
const char *mcp_media_type(const char *name, const void *data, size_t len);
/* The same by its name alone, for a list. */
const char *mcp_media_of_name(const char *name);
/* Is it a type of pictures that models see: PNG, JPEG, GIF, WebP? */
bool mcp_media_is_picture(const char *type);
/* Is a file of that type text, if it is UTF-8? */
bool mcp_media_is_text(const char *type);

/* Append the URI; name: any bytes. */
void mcp_add_uri(struct buf *out, const char *id, const char *name);
/* The id in a URI of this form, with whatever name: its length, and *id in the
 * URI; 0: it is another one. */
size_t mcp_uri_id(const char *uri, size_t len, const char **id);
#define MCP_URI_TEMPLATE "inline://files/{id}/{name}"

#endif
