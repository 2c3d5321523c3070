/* SPDX-License-Identifier: MIT */
#ifndef EVAL_REQUEST_H
#define EVAL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eval_refusal.h"
#include "../../pytext/pyjson.h"

#include "../../../sandbox/protocol/cell.h"

/*
 * POST /eval: from the bytes of a request to what is to be run, or to the
 * answer that it gets without a run.  The contract is snekbox's, to the letter
 * of what its JSON Schema validator says; of several faults it names the one
 * nearest to the root and, among those, the one whose name comes last in the
 * alphabet or whose index is the highest.
 */

/* All that it points to is of the document; but interpreter, which is one of
 * those that eval_parse() was given. */
struct eval_request {
	struct cell_bytes *words; /* arguments of the interpreter */
	size_t word_count;
	/* Files to be there before the run; of equal paths the last one counts.
	 * What had a ".." in its path comes back in any case. */
	struct cell_input *inputs;
	size_t input_count;
	const char *interpreter; /* NULL: the default one */
	bool stands_in;		 /* that one, for one that is not there */
	const char *input;	 /* NULL: standard input is empty */
	size_t input_len;
	int64_t timeout_ms; /* 0: as configured */
	struct pyjson doc;  /* to be released */
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
