/* SPDX-License-Identifier: MIT */
#ifndef PATH_H
#define PATH_H

#include <stdbool.h>

#include "protocol/frame_limits.h"

struct buf;

/*
 * Paths that people type, relative to the current directory of their sandbox.
 * This is for their sake and for clear messages; what holds is the cell, which
 * walks every path again and follows nothing.
 */
#define PATH_SIZE (LIMIT_PATH + 1)

enum path_result {
	PATH_OK,
	PATH_OUTSIDE,  /* absolute, or above the top */
	PATH_TOO_LONG, /* over LIMIT_PATH, or a name over LIMIT_NAME */
};

/*
 * Resolve path against cwd ("" is the workspace itself) by its letters alone:
 * "." and empty names go, ".." drops a name, "~" at the start is the top.  The
 * result has no '/' at either end and is "" for the workspace itself.
 */
enum path_result path_resolve(const char *cwd, const char *path,
    char resolved[PATH_SIZE]);

/* Was a folder meant: does it end in '/', "." or ".."? */
bool path_means_folder(const char *path);
/* The last name of a path: "" for the workspace itself, and after a '/' at the
 * end. */
const char *path_name(const char *path);

/* The part of a resolved path below the packages, "" for their folder itself;
 * NULL: it is somewhere else. */
const char *path_in_packages(const char *resolved);

#endif
