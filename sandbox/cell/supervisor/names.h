/* SPDX-License-Identifier: MIT */
#ifndef NAMES_H
#define NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The names in a folder, without a heap: begin with its descriptor, which is
 * borrowed, and nothing else. */
struct names {
	int folder;
	bool failed; /* there may be others */
	size_t at;
	size_t end;
	char bytes[2048] __attribute__((aligned(8)));
};

/* The next one, or NULL when there is none left. */
const char *names_next(struct names *names);

#endif
