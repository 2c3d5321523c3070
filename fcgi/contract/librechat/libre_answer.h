/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_ANSWER_H
#define LIBRE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/librechat/libre_request.h"
#include "contract/run_files.h"

#include "base/basics.h"

struct cell_result;

/* The answers, as JSON.  Texts that are no UTF-8 are written with U+FFFD. */

/* {"error":…}, with details where they are not NULL. */
void libre_add_error(struct buf *out, const char *error, const char *details);
/* The body of 429, from which the client takes the time. */
void libre_add_rate_limited(struct buf *out, const char *message,
    int64_t seconds);

/* ---- a run ---- */

#define LIBRE_OUTPUT_MAX ((size_t)1 << 20) /* bytes of each stream */

/* One stream: what is over the bound is dropped, but known. */
struct libre_stream {
	struct buf text; /* BUF_INIT(LIBRE_OUTPUT_MAX), to be released */
	bool over;
};

void libre_stream_add(struct libre_stream *s, const void *data, size_t len);

struct libre_outcome {
	const char *session;
	const struct libre_stream *out;
	const struct libre_stream *err;
	const struct cell_result *cell;
	int64_t timeout_ms;
	int64_t wall_ms;
	const struct run_files *files; /* in the work folder */
	/* Of the request, but not there any more: names, NULL at the end; or
	 * NULL. */
	const char *const *missing;
	/* Inputs that the run has removed, in the same way. */
	const char *const *deleted;
	const char *note; /* a line more for the model, or NULL */
	/* The conversation's own cell, and is it a new one?  NULL: it had none.
	 */
	const char *runtime;
	bool runtime_new;
};

/* Lines for the person, or the model, that say how the run ended stand below
 * standard error: the client shows nothing else. */
void libre_add_outcome(struct buf *out, const struct libre_outcome *outcome);
/* More than its length can be, with LIBRE_FILES_MAX inputs and as many files as
 * a cell may tell of. */
#define LIBRE_ANSWER_MAX ((size_t)64 << 20)

/* ---- a program that calls tools ---- */

#define LIBRE_FAILED "Execution failed or timed out"

/* It is over: append what went wrong, in the words that the client knows.
 * False: nothing did. */
bool libre_has_failed(const struct libre_outcome *outcome, struct buf *error);
void libre_add_completed(struct buf *out, const struct libre_outcome *outcome);
void libre_add_failed(struct buf *out, const struct libre_outcome *outcome,
    const char *error);
/* Calls, a list, come before it can go on. */
void libre_add_calls(struct buf *out, const struct libre_outcome *outcome,
    json_t *calls, const char *token);

/* ---- files ---- */

struct libre_stored {
	const char *session;
	const char *id;
	const char *name;
	int64_t size;
	int64_t uploaded_ms; /* wall clock */
	bool read_only;
};

/* Of an upload: one entry of "files".  error NULL: it is kept. */
void libre_add_uploaded(struct buf *out, const char *id, const char *name,
    const char *error, bool batch);

/* GET /sessions/S/objects/F. */
void libre_add_object(struct buf *out, const struct libre_stored *file);

enum libre_detail { LIBRE_SIMPLE, LIBRE_SUMMARY, LIBRE_FULL };
/* An item of GET /files/S. */
void libre_add_listed(struct buf *out, const struct libre_stored *file,
    enum libre_detail detail);

#endif
