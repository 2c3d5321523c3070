/* SPDX-License-Identifier: MIT */
#ifndef MCP_MEDIA_H
#define MCP_MEDIA_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * What a file is, told by its first bytes and its name; and the URI by which a
 * client asks for one of the store: inline://files/<id>/<name>.
 */

/* Its media type, static.  Pictures are known by their bytes alone, so that
 * what is shown as one is one. */
const char *mcp_media_type(const char *name, const void *data, size_t len);
/* The same by its name alone, for a list. */
const char *mcp_media_of_name(const char *name);
/* One that models see: PNG, JPEG, GIF, WebP. */
bool mcp_media_is_picture(const char *type);
/* Of that type is text, if it is UTF-8. */
bool mcp_media_is_text(const char *type);

/* Append the URI; name: any bytes. */
void mcp_add_uri(struct buf *out, const char *id, const char *name);
/* The id in a URI of this form, with whatever name: its length, and *id in the
 * URI; 0: it is another one. */
size_t mcp_uri_id(const char *uri, size_t len, const char **id);
#define MCP_URI_TEMPLATE "inline://files/{id}/{name}"

#endif
