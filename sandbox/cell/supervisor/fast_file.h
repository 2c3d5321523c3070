/* SPDX-License-Identifier: MIT */
#ifndef FAST_FILE_H
#define FAST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared.h"

/*
 * The one file that a usual request may bring (fast_path.c): its program.
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
