/* SPDX-License-Identifier: MIT */
#ifndef SEMVER_H
#define SEMVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Ranges of versions as npm's semver reads them: "3.11.2", "3.11", "3.x",
 * ">=3.9 <3.12", "^3.9", "~3.10", "3.9 - 3.11", "3.9 || 3.13", "*".  The
 * versions that are looked for are releases: a range that names a pre-release
 * orders it below its release, and no version is one.
 */
struct semver {
	int64_t major;
	int64_t minor;
	int64_t patch;
};

/* A longer range is none. */
#define SEMVER_RANGE_MAX 256

/* Read "3.11.2", three numbers and nothing else.  False: it is none. */
bool semver_read(struct semver *version, const char *text, size_t len);
/* Less than 0, 0, or more, as strcmp(). */
int semver_compare(const struct semver *a, const struct semver *b);
/* Is the version in the range?  False, too, when that is no range. */
bool semver_is_in(const struct semver *version, const char *range, size_t len);
/* The version that a range of one version names: 3.10.0 of "3.10", "^3.10.0" or
 * ">=3.10".  False: the range is another one, or names no major version. */
bool semver_read_wanted(struct semver *wanted, const char *range, size_t len);
/* Is version nearer to the wanted one than best is?  best NULL: there is none
 * yet.  A version of another major is never near, patches do not count.  Of two
 * that are as far away, the newer is nearer. */
bool semver_is_nearer(const struct semver *version, const struct semver *best,
    const struct semver *wanted);

#endif
