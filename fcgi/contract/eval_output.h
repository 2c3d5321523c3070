/* SPDX-License-Identifier: MIT */
#ifndef EVAL_OUTPUT_H
#define EVAL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "../../sandbox/base/buf.h"

/*
 * What a run prints, as snekbox takes it: strict UTF-8, every newline a "\n",
 * read in pieces of 10,000 characters until the size of the pieces, as CPython
 * counts it, is over 1,000,000.
 */
enum eval_output_state {
	EVAL_OUTPUT_OPEN,
	EVAL_OUTPUT_FULL,    /* the run is to be ended: 143 */
	EVAL_OUTPUT_INVALID, /* the result is null */
};

struct eval_output {
	enum eval_output_state state;
	struct buf text;
	size_t total;	   /* of whole pieces, as counted */
	size_t characters; /* of the present piece */
	unsigned widest;   /* its widest character: 1 ASCII, 2 up to U+00FF,
			    * 3 up to U+FFFF, 4 */
	bool after_return; /* a "\n" that comes next belongs to the last "\r" */
	char pending[4];
	size_t pending_count;
};

void eval_output_init(struct eval_output *out);
void eval_output_release(struct eval_output *out);
/* False: it takes no more, now or ever. */
bool eval_output_add(struct eval_output *out, const void *data, size_t len);
/* The run has ended: what is pending is invalid, and the last piece counts. */
void eval_output_end(struct eval_output *out);

#endif
