/* SPDX-License-Identifier: MIT */
#ifndef EVAL_REQUEST_H
#define EVAL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/jtree.h"

#include "base/buf.h"
#include "protocol/cell.h"

/* An answer of /eval that is no result. */
struct eval_refusal {
	int status;
	const char *title; /* static */
	/* UTF-8; may be empty; to be released */
	struct buf description;
};

#define EVAL_DESCRIPTION_MAX ((size_t)1 << 17) /* bytes */

/* Refuse without a description; the caller may then write one.  Always false,
 * so that a check can end with it. */
bool eval_refuse(struct eval_refusal *refusal, int status, const char *title);

#define EVAL_TOO_LONG "The arguments, or standard input, are too long."

/* Append the body of the answer. */
void eval_refusal_add(struct buf *out, const struct eval_refusal *refusal);

/*
 * POST /eval: from the bytes of a request to what is to be run, or to the
 * answer that it gets without a run.  The contract is snekbox's; of several
 * faults the first one is reported.
 */

/* All that it points to is of the document; but interpreter, which is one of
 * those that eval_parse() was given. */
struct eval_request {
	struct cell_bytes *words; /* arguments of the interpreter */
	size_t word_count;
	/* Files to be there before the run; of equal paths the last one counts.
	 * A file whose path had a ".." comes back in any case. */
	struct cell_input *inputs;
	size_t input_count;
	const char *interpreter; /* NULL: the default one */
	bool stands_in;		 /* that one, for one that is not there */
	const char *input;	 /* NULL: standard input is empty */
	size_t input_len;
	int64_t timeout_ms; /* 0: as configured */
	struct jtree doc;   /* to be released */
};

/* interpreters: "3.11", …, NULL; the first one is the default.  fallback: the
 * nearest of them stands in for one that is not there.  content_type NULL: none
 * was sent.  A NUL follows the body; one without Content-Length counts as
 * empty.  True: the document is to be released.  False: answer with
 * the refusal, which is to be released; if its status is 200, with
 * `returncode: null`, and its description as `stdout`. */
bool eval_parse(struct eval_request *req, const char *const *interpreters,
    bool fallback, const char *content_type, const char *body, size_t len,
    struct eval_refusal *refusal);

#endif
