#ifndef LOOK_H
#define LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What did a run change in a person's folder?  Two looks are compared, one
 * before the run and one after it.  A look is a row of bytes, the notes:
 *
 *	u64	when the first look began: nanoseconds of the clock for files
 *	u16	length of the folder's path, and the path
 *	then for each regular file
 *	u16	length of its path, and the path, below the root
 *	u64	inode, size, mtime and ctime in nanoseconds
 *	in the end
 *	u16	0, or LOOK_CUT: there was more than one look takes in
 *
 * Names that begin with a dot do not count, nor what is in __pycache__.
 * harvest.py reads the notes when something has changed.
 */
#define LOOK_CUT 65535
#define LOOK_ENTRIES 10000
#define LOOK_DEPTH 32

/* Look at the folder with this path below root, and write the notes to file.
 * Returns their length, or -1. */
int64_t look_note(int root, const char *folder, size_t len, int file);

/* Would the notes from `at` to `end` in file be other ones now? */
bool look_differs(int root, int file, int64_t at, int64_t end);

/* Remove the files in a folder.  True when there is nothing in it then. */
bool look_sweep(const char *path);

#endif
