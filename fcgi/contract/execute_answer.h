/* SPDX-License-Identifier: MIT */
#ifndef EXECUTE_ANSWER_H
#define EXECUTE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../sandbox/base/buf.h"

struct cell_result;

/* The answers of the code-interpreter routes, but for their errors. */

/* One stream of a run, kept up to a bound; cut as the contract says: what is
 * over `max` bytes is its first max - 32 and "\n...[truncated]". */
struct capture {
	struct buf head; /* up to max bytes, as they came */
	size_t max;
	bool over;
};

void capture_init(struct capture *c, size_t max);
void capture_release(struct capture *c);
void capture_add(struct capture *c, const void *data, size_t len);

/* A file that a run left and the store took. */
struct execute_kept {
	const char *path; /* UTF-8, or it is written with U+FFFD */
	const char *id;	  /* NULL: it was left out */
	int64_t size;
	const char *why; /* of one that was left out: static */
};

struct execute_result {
	const struct capture *out;
	const struct capture *err;
	const struct cell_result *cell;
	int64_t duration_ms;
	const struct execute_kept *files; /* NULL: an answer without `files` */
	size_t file_count;
	bool extras;
};

/* Append the JSON of ExecuteResponse, or of BashExecResponse. */
void execute_answer(struct buf *out, const struct execute_result *result);
/* An upper bound of its length. */
size_t execute_answer_max(const struct execute_result *result);

/* Append what the last event of a stream has in common with it: exit_code,
 * timed_out, duration_ms, files and, if wanted, the extras; with braces. */
void execute_add_end(struct buf *out, const struct execute_result *result,
    bool ascii);

/* Append {"session_id":…,"expires_at":…}; expiry in wall clock milliseconds. */
void execute_add_session(struct buf *out, const char *id, int64_t expires_ms);
/* Append {"file_id":…,"filename":…,"size_bytes":…} of a file of /v1/files, and
 * the same with its "upload_time":…, as in a list.  name: UTF-8; the time is on
 * the wall clock. */
void execute_add_uploaded(struct buf *out, const char *id, const char *name,
    int64_t size);
void execute_add_entry(struct buf *out, const char *id, const char *name,
    int64_t size, int64_t uploaded_ms);

#endif
