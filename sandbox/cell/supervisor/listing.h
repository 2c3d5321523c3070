/* SPDX-License-Identifier: MIT */
#ifndef LISTING_H
#define LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cell/supervisor/shared.h"

/*
 * Listings of a person's folder: one before a run and one after it show which
 * files the run has changed.  A listing is a row of bytes in a file, the notes:
 *
 *	u64	when it began: nanoseconds of the clock for files
 *	u16	length of the folder's path, and the path
 *	then for each regular file
 *	u16	length of its path, and the path, below the root
 *	u64	inode, size, mtime and ctime in nanoseconds
 *	in the end
 *	u16	0, or SUPERVISOR_LISTING_CUT: there were more entries or levels
 *
 * Names that begin with a dot do not count, nor what is in __pycache__.
 * harvest.py compares the notes when something has changed.
 */
#define LISTING_ENTRIES 10000
#define LISTING_DEPTH 32

struct statx;

/* Inode, size, mtime and ctime of a file. */
#define LISTING_MARKS 4
void listing_mark(const struct statx *status, uint64_t mark[LISTING_MARKS]);

/* The flags to open a folder with, to list it. */
#define LISTING_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* List the folder with this path below root, and write the notes to file.
 * Returns their length, or -1. */
int64_t listing_write(int root, const char *folder, size_t len, int file);

/* List the folder of earlier notes, `len` bytes at `at`, the end of file, once
 * more.  The new notes come behind them.  Returns their length, or 0 when
 * nothing has changed, or -1. */
int64_t listing_compare(int root, int file, int64_t at, int64_t len);

/* Does a name in the folder begin with `beginning`? */
bool listing_has_name(const char *path, const char *beginning);

/* Remove the files in a folder.  True: the folder is empty now. */
bool listing_empty_folder(const char *path);

#endif
