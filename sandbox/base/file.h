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

/* ---- files of KEY=VALUE lines ---- */

/*
 * Files of KEY=VALUE lines, as systemd's EnvironmentFile= reads them: blank
 * lines and lines that start with '#' are skipped, blanks around key and value
 * are dropped, so is one pair of single or double quotes around the whole
 * value; nothing is expanded, and there are no continued lines.
 */

/* Called for each line in order; both texts are valid for as long as the text
 * that was parsed.  -1 with err filled stops. */
typedef int (*envfile_fn)(void *arg, const char *key, const char *value,
    struct err *err);

/* Walk a text, which is taken apart in place.  ERR_CONFIG "<name> line N: why"
 * when a line is malformed or has a NUL byte in it.  name: for errors only. */
int envfile_parse(struct buf *text, const char *name, envfile_fn fn, void *arg,
    struct err *err);

#endif
