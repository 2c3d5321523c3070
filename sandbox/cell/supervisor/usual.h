#ifndef USUAL_H
#define USUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared.h"

/*
 * The request for `python -c CODE` as most are: read here, because the
 * interpreter would touch a hundred pages for it, each of which is a copy.
 * Whatever is not as expected here is not judged: the interpreter reads all of
 * it again.
 */
enum usual_limit {
	USUAL_MEMORY,
	USUAL_FILES,
	USUAL_CPU,
	USUAL_PROCESSES,
	USUAL_LIMITS
};

struct usual {
	struct keeper_plan plan; /* but for input and notes, which are 0 */
	bool merge;		 /* standard error goes where output goes */
	uint64_t limits[USUAL_LIMITS]; /* 0: none */
	struct keeper_usual *text;     /* borrowed: words and env go there */
	const unsigned char *input;    /* standard input, in its packet */
	size_t input_len;
};

/* The head of a request, at most FRAME_MAX bytes.  False when it is not a usual
 * one. */
bool usual_read_head(struct usual *usual, struct keeper_usual *text,
    const void *packet, size_t len);

/* A piece of it.  False: not a usual one. */
bool usual_read_piece(struct usual *usual, const void *packet, size_t len);

/* After all of it. */
bool usual_is_whole(const struct usual *usual);

#endif
