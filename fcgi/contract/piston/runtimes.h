/* SPDX-License-Identifier: MIT */
#ifndef PISTON_RUNTIMES_H
#define PISTON_RUNTIMES_H

#include <stdbool.h>
#include <stddef.h>

#include "../semver.h"

struct buf;

/*
 * Languages in their versions, as Piston names them: what an interpreter on
 * offer is called there, and which one a request means.
 */
enum piston_language {
	PISTON_PYTHON,
	PISTON_BASH,
};

struct piston_runtime {
	enum piston_language language;
	struct semver version;
	const char *interpreter; /* of SANDBOX_IMAGES; borrowed */
};

/* "python", "bash". */
const char *piston_language_name(enum piston_language language);

/* The newest of a language, or of an alias of its, in a range of versions; the
 * first one of those that are alike.  NULL: there is none. */
const struct piston_runtime *piston_find(const struct piston_runtime *runtimes,
    size_t count, const char *language, size_t language_len, const char *range,
    size_t range_len);
/* The same where that has found none: the nearest to the version which the
 * range names.  NULL: there is none, or the range names no version. */
const struct piston_runtime *piston_nearest(const struct piston_runtime
						*runtimes,
    size_t count, const char *language, size_t language_len, const char *range,
    size_t range_len);

/* Append "3.11.2". */
void piston_add_version(struct buf *out, const struct semver *version);
/* Append the answer of /runtimes, and that of /packages: all are installed. */
void piston_add_runtimes(struct buf *out, const struct piston_runtime *runtimes,
    size_t count);
void piston_add_packages(struct buf *out, const struct piston_runtime *runtimes,
    size_t count);

#endif
