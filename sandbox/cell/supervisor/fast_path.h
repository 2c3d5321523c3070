/* SPDX-License-Identifier: MIT */
#ifndef FAST_PATH_H
#define FAST_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cell/supervisor/shared.h"

/*
 * The request for `python -c CODE`, for a program in one file, or for a
 * person's source, as most are: read here, because the interpreter would touch
 * a hundred pages for it, each of which is a copy.
 * Whatever is not as expected here is not judged: the interpreter reads all of
 * it again.
 */
enum fast_limit {
	FAST_MEMORY,
	FAST_FILES,
	FAST_CPU,
	FAST_PROCESSES,
	FAST_LIMITS = SUPERVISOR_LIMITS
};

/* The head of a request, at most FRAME_MAX bytes; what is read of it goes into
 * plan, merge and limits of k, into supervisor_fast and fast_file, and stays
 * where it is.  False when it is not
 * a usual one: then they hold nothing of use. */
bool fast_read_head(struct supervisor *k, const void *packet, size_t len);

/* A piece of it, which stays where it is if it is k->input or in fast_file.
 * False: not a usual one. */
bool fast_read_piece(struct supervisor *k, const void *packet, size_t len);

/* After all of it. */
bool fast_is_whole(const struct supervisor *k);

/*
 * The one file that a usual request may bring: its program.
 * Names and bytes are borrowed from the packets.
 */
#define FAST_FILE_MODE 0644

struct fast_file {
	const unsigned char *name; /* no '/', no NUL; NULL: there is no file */
	size_t name_len;
	const void *data;
	size_t len;
	unsigned int mode;
	bool dated; /* mtime, in Unix seconds, was said */
	int64_t mtime;
	bool hidden; /* never sent back, whatever becomes of it */
	const unsigned char *title; /* what tracebacks call it */
	size_t title_len;
};
extern struct fast_file fast_file;

/*
 * Put it into the folder of k's plan, and behind what is in k->file by now what
 * harvest.py must know (plan.notes bytes):
 *
 *	u8	'H': it is hidden; 'S': sent when its mark is another
 *	u64	its mark: inode, size, mtime and ctime in nanoseconds
 *	then its name
 *
 * False: it could not be, and nothing is left of it.
 */
bool fast_file_stage(struct supervisor *k);

/* After the run: is it alone in the folder, and as it was?  The owner may have
 * locked the folder: false. */
bool fast_file_alone(int folder, const struct supervisor_plan *plan);

#endif
