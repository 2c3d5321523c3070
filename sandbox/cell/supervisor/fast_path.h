/* SPDX-License-Identifier: MIT */
#ifndef FAST_PATH_H
#define FAST_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "shared.h"

/*
 * The request for `python -c CODE`, for a program in one file, or for a
 * person's source, as most are: read here, because the interpreter would touch
 * a hundred pages for it, each of which is a copy.
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

/* The head of a request, at most FRAME_MAX bytes; what is read of it goes into
 * plan, merge and limits of k, into supervisor_fast and fast_file, and stays
 * where it is.  False when it is not
 * a usual one: then they hold nothing of use. */
bool fast_read_head(struct supervisor *k, const void *packet, size_t len);

/* A piece of it, which stays where it is if it is k->input or in fast_file.
 * False: not a usual one. */
bool fast_read_piece(struct supervisor *k, const void *packet, size_t len);

/* After all of it. */
bool fast_is_whole(const struct supervisor *k);

#endif
