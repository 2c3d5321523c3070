/* SPDX-License-Identifier: MIT */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

/*
 * The names that are nearest to what somebody has typed, by Levenshtein's
 * distance.  A name that is too far to have been meant is left out.
 */
#define NEAREST_MOST 3
#define NEAREST_NAME 40 /* bytes: longer names are near to none */

struct nearest {
	struct {
		char name[NEAREST_NAME];
		size_t far;
	} of[NEAREST_MOST]; /* in the order of their distance */
	size_t count;
};

/* Levenshtein's distance: how many letters are to be changed, put in or left
 * out.  b has at most NEAREST_NAME bytes. */
size_t nearest_distance(const char *a, const char *b);
/* Add a copy of a name if it is near, and nearer than the last of three; shown
 * is what it is called. */
void nearest_add(struct nearest *nearest, const char *typed, const char *name,
    const char *shown);

#endif
