/* SPDX-License-Identifier: MIT */
#ifndef FILE_H
#define FILE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct stat;

/* Append a whole file to out.  ERR_CONFIG when it cannot be read or is larger
 * than out may be: these are files of the installation. */
int file_read(const char *path, struct buf *out, struct err *err);
/* Replace a file whole or not at all; mode 0640, and the group of the one that
 * was there: whoever was let in to read that reads this.  lasting: a power cut
 * does not undo it. */
int file_write(const char *path, const char *text, size_t len, bool lasting,
    struct err *err);
/* Are these two of one file that has not changed, nor its rights? */
bool file_is_same(const struct stat *one, const struct stat *other);

#endif
