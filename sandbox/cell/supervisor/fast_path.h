/* SPDX-License-Identifier: MIT */
#ifndef FAST_PATH_H
#define FAST_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cell/supervisor/shared.h"

/*
 * Fast requests: `python -c CODE`, a program in one file, or a person's source,
 * as most requests are.  They are read in C, because the interpreter would copy
 * a hundred pages for that.  A request that is not as expected is not refused
 * here: the interpreter reads all of it again.
 */
enum fast_limit {
	FAST_MEMORY,
	FAST_FILES,
	FAST_CPU,
	FAST_PROCESSES,
	FAST_LIMITS = SUPERVISOR_LIMITS
};

/* Read the head of a request, at most FRAME_MAX bytes, into plan, merge and
 * limits of k, supervisor_fast and fast_file.  The packet must stay where it
 * is. False: the request is not a fast one, and their values mean nothing. */
bool fast_read_head(struct supervisor *k, const void *packet, size_t len);

/* Read a piece of the request.  The packet must stay where it is, for k->input
 * and fast_file.  False: the request is not a fast one. */
bool fast_read_piece(struct supervisor *k, const void *packet, size_t len);

/* Is the request, after its last piece, a whole fast one? */
bool fast_is_whole(const struct supervisor *k);

/*
 * The one file of a fast request: its program.  Names and bytes are borrowed
 * from the packets.
 */
#define FAST_FILE_MODE 0644

struct fast_file {
	const unsigned char *name; /* no '/', no NUL; NULL: no file */
	size_t name_len;
	const void *data;
	size_t len;
	unsigned int mode;
	bool dated; /* mtime is set, in Unix seconds */
	int64_t mtime;
	bool hidden;		    /* never sent back, even if it changes */
	const unsigned char *title; /* its name in tracebacks */
	size_t title_len;
};
extern struct fast_file fast_file;

/*
 * Write the file into the folder of k's plan, and append notes for harvest.py
 * to k->file (plan.notes bytes):
 *
 * 	u8	'H': the file is hidden; 'S': sent when its mark has changed
 * 	u64	its mark: inode, size, mtime and ctime in nanoseconds
 * 	then its name
 *
 * False: that failed, and nothing is left of the file.
 */
bool fast_file_stage(struct supervisor *k);

/* After the run: is the file alone in the folder, and unchanged?  False also
 * where the owner has locked the folder. */
bool fast_file_alone(int folder, const struct supervisor_plan *plan);

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

#define LISTING_MARKS 4 /* inode, size, mtime and ctime of a file */

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
