/* SPDX-License-Identifier: MIT */
#ifndef SEMVER_H
#define SEMVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Versions of three numbers, and what clients ask for: a version ("3.11.2"), or
 * its beginning ("3.11", "3", "3.x", "3.11.*"), or any ("*", "x").
 */
struct semver {
	int64_t major;
	int64_t minor;
	int64_t patch;
};

/* Read "3.11.2", three numbers and nothing else.  False: it is none. */
bool semver_read(struct semver *version, const char *text, size_t len);
/* Less than 0, 0, or more, as strcmp(). */
int semver_compare(const struct semver *a, const struct semver *b);
/* Is the version one of those?  False, too, when that is no pattern. */
bool semver_matches(const struct semver *version, const char *pattern,
    size_t len);
/* Read the version that a pattern begins with: 3.10.0 of "3.10".  False: it is
 * none, or names no major version. */
bool semver_read_wanted(struct semver *wanted, const char *pattern, size_t len);
/* Is version nearer to the wanted one than best is?  best NULL: there is none
 * yet.  A version of another major is never near, patches do not count.  Of two
 * that are as far away, the newer is nearer. */
bool semver_is_nearer(const struct semver *version, const struct semver *best,
    const struct semver *wanted);

#endif
