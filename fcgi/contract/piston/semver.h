/* SPDX-License-Identifier: MIT */
#ifndef PISTON_SEMVER_H
#define PISTON_SEMVER_H

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

#endif
