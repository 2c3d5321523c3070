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

#endif
