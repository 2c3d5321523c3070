/* SPDX-License-Identifier: MIT */
#ifndef MCP_RESULT_H
#define MCP_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "contract/run_files.h"

#include "base/basics.h"
#include "protocol/cell.h"

/*
 * Output of a run, cut for a model: its beginning, and its end, where an error
 * stands.
 */
#define MCP_HEAD_BYTES 12000
#define MCP_TAIL_BYTES 8000

struct mcp_output {
	struct buf kept; /* to be released: the beginning, and the end */
	int64_t total;	 /* bytes that came */
};
/* clang-format off */
#define MCP_OUTPUT_INIT \
	{ .kept = BUF_INIT((size_t)MCP_HEAD_BYTES + 2 * MCP_TAIL_BYTES) }
/* clang-format on */

void mcp_output_add(struct mcp_output *o, const void *data, size_t len);
/* Was something left out? */
bool mcp_output_is_cut(const struct mcp_output *o);
/* Append it as UTF-8; bytes that are none become U+FFFD.  Where something was
 * left out a line says how much. */
void mcp_output_text(struct buf *out, const struct mcp_output *o);
/* Append the last line that is not empty, at most max bytes of it, for
 * progress. */
void mcp_output_last_line(struct buf *out, const struct mcp_output *o,
    size_t max);

/*
 * Results, which the caller owns.  Structured content fits the tool's
 * outputSchema whatever has happened; the content says the same for clients
 * that show nothing else.
 */

/* Clients refuse the result of a tool that is longer. */
#define MCP_RESULT_MAX (1 << 20)
/* More than any answer can be: of a resource, and of all else. */
#define MCP_ANSWER_MAX ((size_t)24 << 20)

/* A result that says, in UTF-8, what went wrong and what to do (isError). */
json_t *mcp_trouble(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- a run ---- */

#define MCP_NO_ROOM "the rest of the answer leaves no room for it"
/* Files of a run that come back; others are listed in `left_out`. */
#define MCP_LEFT_MAX 64
#define MCP_SHOWN_TEXT_BYTES (1 << 14) /* an SVG, which is text */

struct mcp_run {
	const struct mcp_output *out;
	const struct mcp_output *err;
	const struct cell_result *cell; /* no REASON_ERROR */
	int64_t timeout_s;
	struct run_files *files;
	bool more_left; /* there were more files */
	bool links;	/* the client knows content of the type resource_link */
};

/* At most MCP_RESULT_MAX bytes if the names of its files are not absurd.
 * Pictures that do not fit are hidden. */
json_t *mcp_pack_run(const struct mcp_run *run);

/* ---- sessions and their files ---- */

json_t *mcp_pack_session(const char *id, int64_t expires_s);
json_t *mcp_pack_closed(void);
json_t *mcp_pack_written(const char *path, size_t size);
/* A part of a file, from offset on; size: of the whole file.  As text where it
 * is; then without the part of a character at its end, with which next_offset
 * begins. */
json_t *mcp_pack_read(const char *path, const char *data, size_t len,
    int64_t offset, int64_t size);

#define MCP_ENTRIES_MAX 1000 /* of a listing */

struct mcp_listing {
	const char *folder; /* its path, "" for the session's own */
	json_t *files;
	struct buf text;
	size_t size; /* of files in JSON */
	bool cut;    /* an entry did not fit */
};
/* clang-format off */
#define MCP_LISTING_INIT(path) \
	{ .folder = (path), .files = json_array(), \
	  .text = BUF_INIT(MCP_RESULT_MAX) }
/* clang-format on */

/* Add an entry with a name of any bytes. */
void mcp_listing_add(struct mcp_listing *list, const char *name,
    enum entry_kind kind, int64_t size);
/* total: of the folder's entries. */
json_t *mcp_pack_listing(struct mcp_listing *list, int64_t total);
void mcp_listing_release(struct mcp_listing *list);

/* ---- resources: files of the store ---- */

/* Append the URI of a file; name: any bytes. */
void mcp_add_uri(struct buf *out, const char *id, const char *name);
/* The id in a URI of this form, with whatever name: its length, and *id in the
 * URI; 0: it is another one. */
size_t mcp_uri_id(const char *uri, size_t len, const char **id);

/* An item of a list: a file of the store. */
json_t *mcp_pack_resource(const char *id, const char *name, int64_t size);
/* The content of one, up to MCP_RESOURCE_MAX bytes; uri, up to MCP_URI_MAX, as
 * it was asked for.  A text that would be too long is a blob. */
#define MCP_RESOURCE_MAX ((size_t)8 << 20)
#define MCP_URI_MAX ((size_t)64 << 10)
json_t *mcp_pack_contents(const json_t *uri, const char *name, const char *data,
    size_t len);

#endif
