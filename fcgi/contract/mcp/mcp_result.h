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

struct mcp_message;

/*
 * Output of a run, cut for a model: its beginning, and its end, where an error
 * stands.
 */
#define MCP_HEAD_BYTES 12000
#define MCP_TAIL_BYTES 8000

struct mcp_output {
	struct buf head; /* to be released, as the next */
	struct buf tail;
	int64_t total; /* bytes that came */
};
/* clang-format off */
#define MCP_OUTPUT_INIT \
	{ .head = BUF_INIT(MCP_HEAD_BYTES), \
	  .tail = BUF_INIT((size_t)2 * MCP_TAIL_BYTES) }
/* clang-format on */

void mcp_output_add(struct mcp_output *o, const void *data, size_t len);
void mcp_output_release(struct mcp_output *o);
/* Was something left out? */
bool mcp_output_is_cut(const struct mcp_output *o);
/* Append it as UTF-8; bytes that are none become U+FFFD.  Where something was
 * left out a line says how much. */
void mcp_output_text(struct buf *out, const struct mcp_output *o);
#define MCP_OUTPUT_TEXT_MAX \
	((size_t)3 * (MCP_HEAD_BYTES + MCP_TAIL_BYTES) + 200)

/* The last line that is not empty, at most max bytes of it, for progress. */
void mcp_output_last_line(struct buf *out, const struct mcp_output *o,
    size_t max);

/*
 * Answers of the tools, whole messages each.  Structured content fits the
 * tool's outputSchema whatever has happened; the content says the same for
 * clients that show nothing else.
 */

/* The model is told, in UTF-8, what went wrong and what to do (isError). */
void mcp_add_trouble(struct buf *out, const struct mcp_message *m,
    const char *text);

/* ---- a run ---- */

/* The file is whole: a picture that is not fit to be shown loses its content,
 * and `hidden` says why. */
void mcp_check_picture(struct run_file *file);

/* More of a run are told of in `left_out`. */
#define MCP_LEFT_MAX 64
#define MCP_SHOWN_TEXT_BYTES (1 << 14) /* an SVG, which is text */

struct mcp_run {
	const struct mcp_output *out;
	const struct mcp_output *err;
	const struct cell_result *cell; /* no REASON_ERROR */
	int64_t duration_ms;
	int64_t timeout_s;
	struct run_files *files;
	bool more_left; /* there were more files */
};

/* Append the answer, of at most MCP_RESULT_MAX bytes if the names of its files
 * are not absurd.  Pictures that do not fit are hidden. */
void mcp_add_run(struct buf *out, const struct mcp_message *m,
    const struct mcp_run *run);
/* Clients refuse the result of a tool that is longer. */
#define MCP_RESULT_MAX (1 << 20)
/* More than any answer can be: of a resource, and of all else. */
#define MCP_ANSWER_MAX ((size_t)24 << 20)

/* ---- sessions and their files ---- */

void mcp_add_session(struct buf *out, const struct mcp_message *m,
    const char *id, int64_t expires_s);
void mcp_add_closed(struct buf *out, const struct mcp_message *m);
void mcp_add_written(struct buf *out, const struct mcp_message *m,
    const char *path, size_t size);

#define MCP_ENTRIES_MAX 1000 /* of a listing */

struct mcp_entry {
	char *name; /* any bytes */
	enum entry_kind kind;
	int64_t size;
};

/* folder: its path, "" for the session's own; count: up to MCP_ENTRIES_MAX. */
void mcp_add_listing(struct buf *out, const struct mcp_message *m,
    const char *folder, const struct mcp_entry *entries, size_t count,
    bool truncated);

/* A part of a file, from offset on; size: of the whole file.  As text where it
 * is; then without the part of a character at its end, with which next_offset
 * begins. */
void mcp_add_read(struct buf *out, const struct mcp_message *m,
    const char *path, const char *data, size_t len, int64_t offset,
    int64_t size);

/* ---- resources: files of the store ---- */

#define MCP_URI_TEMPLATE "inline://files/{id}/{name}"
/* Append the URI of a file; name: any bytes. */
void mcp_add_uri(struct buf *out, const char *id, const char *name);
/* The id in a URI of this form, with whatever name: its length, and *id in the
 * URI; 0: it is another one. */
size_t mcp_uri_id(const char *uri, size_t len, const char **id);

/* An item of a list: a file of the store; name: UTF-8. */
void mcp_add_resource(struct buf *out, const char *id, const char *name,
    int64_t size);
/* The content of one, up to MCP_RESOURCE_MAX bytes; uri, up to MCP_URI_MAX, as
 * it was asked for.  A text that would be too long is a blob. */
#define MCP_RESOURCE_MAX ((size_t)8 << 20)
#define MCP_URI_MAX ((size_t)64 << 10)
void mcp_add_contents(struct buf *out, const struct mcp_message *m,
    const json_t *uri, const char *name, const char *data, size_t len);

#endif
