/* SPDX-License-Identifier: MIT */
#ifndef PATH_TEXT_H
#define PATH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * Paths on disk are bytes, and answers are UTF-8.  A name that is UTF-8 is its
 * own text.  In any other name each byte that belongs to no character becomes
 * "%FF", and each '%' becomes "%25".  So does the '%' of a name that could be
 * such a text itself ("a%FF"): two paths never have one text.
 */

/* Append the text of a path. */
void path_text_write(struct buf *out, const char *path);

/* The path of a text.  False: the path is the text itself. */
bool path_text_read(struct buf *out, const char *text);

/* Append the text under which a file of a run is kept as a new file.  A name
 * that is UTF-8 stays as it is.  The text is cut to what a path and its names
 * may have.  A number stands before its last name if an earlier file of the run
 * has the text.  Each of `count` structs of `size` bytes begins with a pointer
 * to one. */
void path_text_write_new(struct buf *out, const char *path, const void *earlier,
    size_t count, size_t size);

#endif
