/* SPDX-License-Identifier: MIT */
#ifndef FAST_PATH_H
#define FAST_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared.h"

/*
 * The request for `python -c CODE`, or for a person's source, as most are: read
 * here, because the interpreter would touch a hundred pages for it, each of
 * which is a copy.
 * Whatever is not as expected here is not judged: the interpreter reads all of
 * it again.
 */
enum fast_limit {
	FAST_MEMORY,
	FAST_FILES,
	FAST_CPU,
	FAST_PROCESSES,
	FAST_LIMITS = SUPERVISOR_LIMITS
};

struct fast_path {
	struct supervisor_plan plan; /* but for input and notes, which are 0 */
	bool personal; /* source, and nothing of the environment */
	bool merge;    /* standard error goes where output goes */
	uint64_t limits[FAST_LIMITS]; /* 0: none */
	struct supervisor_fast *text; /* borrowed: words and env go there */
	const unsigned char *input;   /* standard input, in its packet */
	size_t input_len;
};

/* The head of a request, at most FRAME_MAX bytes; personal: to a person's cell.
 * False when it is not a usual one. */
bool fast_read_head(struct fast_path *fast, struct supervisor_fast *text,
    bool personal, const void *packet, size_t len);

/* A piece of it.  False: not a usual one. */
bool fast_read_piece(struct fast_path *fast, const void *packet, size_t len);

/* After all of it. */
bool fast_is_whole(const struct fast_path *fast);

#endif
