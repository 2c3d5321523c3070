/* SPDX-License-Identifier: MIT */
#ifndef TOLD_H
#define TOLD_H

#include <stdbool.h>

struct buf;

/*
 * A path as clients are told of it, in UTF-8, and may send it back.  A name
 * that is UTF-8 is told as it is.  In any other one each byte that belongs to
 * no character becomes "%FF", so that two names do not become one.
 */

/* Append the path.  fits: it is for a new file, so it is cut to what a path and
 * its names may have. */
void told_add_path(struct buf *out, const char *path, bool fits);
/* The path that was told so, with a byte for each "%FF".  False: none was. */
bool told_read_path(struct buf *out, const char *told);

#endif
