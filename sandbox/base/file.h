/* SPDX-License-Identifier: MIT */
#ifndef FILE_H
#define FILE_H

#include <stddef.h>

struct buf;
struct err;

/* Append a whole file to out.  ERR_CONFIG when it cannot be read or is larger
 * than out may be: these are files of the installation. */
int file_read(const char *path, struct buf *out, struct err *err);
/* Replace a file whole or not at all; mode 0640. */
int file_write(const char *path, const char *text, size_t len, struct err *err);

#endif
