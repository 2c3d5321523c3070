/* SPDX-License-Identifier: MIT */
#ifndef LOOK_H
#define LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cell/supervisor/shared.h"

/*
 * What did a run change in a person's folder?  Two looks are compared, one
 * before the run and one after it.  A look is a row of bytes, the notes:
 *
 *	u64	when the look began: nanoseconds of the clock for files
 *	u16	length of the folder's path, and the path
 *	then for each regular file
 *	u16	length of its path, and the path, below the root
 *	u64	inode, size, mtime and ctime in nanoseconds
 *	in the end
 *	u16	0, or SUPERVISOR_LOOK_CUT: there was more than one look takes in
 *
 * Names that begin with a dot do not count, nor what is in __pycache__.
 * harvest.py compares the notes when something has changed.
 */
#define LOOK_ENTRIES 10000
#define LOOK_DEPTH 32

struct statx;

/* Inode, size, mtime and ctime of a file. */
#define LOOK_MARKS 4
void look_mark(const struct statx *status, uint64_t mark[LOOK_MARKS]);

/* How a folder is opened to list it. */
#define LOOK_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Look at the folder with this path below root, and write the notes to file.
 * Returns their length, or -1. */
int64_t look_note(int root, const char *folder, size_t len, int file);

/* The second look, at what the first has noted: `len` bytes at `at`, the end of
 * file.  Its notes come behind those.  Returns their length, or 0 when nothing
 * has changed, or -1. */
int64_t look_again(int root, int file, int64_t at, int64_t len);

/* Does a name in the folder begin with this? */
bool look_finds(const char *path, const char *beginning);

/* Remove the files in a folder.  True when there is nothing in it then. */
bool look_sweep(const char *path);

#endif
