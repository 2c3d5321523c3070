/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_NAME_H
#define LIBRE_NAME_H

#include <stddef.h>

/* Bytes of a file's name, which is a path below the work folder. */
#define LIBRE_NAME_MAX 1024

/* What is wrong with a name, in the contract's words ("must not be empty"),
 * static; NULL: nothing, and it is the path to write to.  A run may make files
 * of any name, and what an answer tells comes back: so only what no file can be
 * called is refused. */
const char *libre_name_fault(const char *name, size_t len);

/* The last part of a path. */
const char *libre_name_base(const char *path);
/* ".csv" of a path: of letters and digits, 12 at most; "" without. */
const char *libre_name_extension(const char *path);
/* The media type that goes with its extension: static. */
const char *libre_name_type(const char *path);

#endif
