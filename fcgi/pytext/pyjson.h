/* SPDX-License-Identifier: MIT */
#ifndef PYJSON_H
#define PYJSON_H

#include <stdbool.h>
#include <stddef.h>

#include "pyjson_tree.h"

struct buf;

/*
 * JSON exactly as CPython's json.loads() reads it: what it takes (NaN, numbers
 * of any size, lone surrogates, NUL, the last of two equal names), what it
 * refuses, with which words and at which place.  The words are those of 3.11.
 * Two bounds are ours: nesting, and how many values there are.
 */
#define PYJSON_DEPTH_MAX 1000
#define PYJSON_VALUES_MAX 1000000

enum pyjson_fault {
	PYJSON_SYNTAX, /* a JSONDecodeError: text, line, column, position */
	PYJSON_VALUE,  /* another ValueError: text is all of it */
	PYJSON_LIMIT,  /* one of our bounds: text, line, column, position */
};

struct pyjson_error {
	enum pyjson_fault fault;
	char text[192];
	size_t line;
	size_t column;
	size_t position; /* in code points */
};

enum pyjson_source {
	PYJSON_DECODED, /* json.loads(body.decode()) */
	PYJSON_BYTES,	/* json.loads(body): a BOM is skipped, surrogates in
			 * UTF-8 pass; UTF-16 and UTF-32 are refused here */
	PYJSON_STRICT,	/* as PYJSON_DECODED, but NaN and the infinities, which
			 * JSON does not have, are refused */
};

/* Parse a body that a NUL follows; it is not needed afterwards.  On false there
 * is nothing to release; else pyjson_release(). */
bool pyjson_parse(struct pyjson *doc, const char *body, size_t len,
    enum pyjson_source source, struct pyjson_error *error);
/* Append str() of the exception: "…: line 1 column 13 (char 12)". */
void pyjson_explain(struct buf *out, const struct pyjson_error *error);

#endif
