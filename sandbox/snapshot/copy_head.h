/* SPDX-License-Identifier: MIT */
#ifndef COPY_HEAD_H
#define COPY_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../protocol/snapshot.h"
#include "store.h"

struct buf;

/*
 * What the copy of a file of the HTTP APIs consists of: parts, and a head that
 * says which these are, and is written last.  Pure functions.
 *
 *	"inline-file 1 ID SIZE USED NOTE\n"	USED: Unix ms, NOTE: its length
 *	the hash of each part, 32 bytes		SHA-256
 *	the note
 *	the hash of all of that
 */
/* The clocks of the hosts, and of the place, differ by so much at most. */
#define COPY_CLOCKS_MS INT64_C(3600000)
#define COPY_PART ((size_t)4 << 20) /* all but the last one */
#define COPY_PARTS ((size_t)25)	    /* SNAPSHOT_FILE_MAX / COPY_PART */
#define COPY_HASH 32
#define COPY_LINE 128
#define COPY_HEAD_MAX \
	(COPY_LINE + (COPY_PARTS + 1) * COPY_HASH + SNAPSHOT_NOTE_MAX)

struct copy_head {
	char id[SNAPSHOT_FILE_LEN + 1];
	int64_t size;
	int64_t used_ms; /* last, as it was known then */
	size_t note_len;
	unsigned char note[SNAPSHOT_NOTE_MAX];
	unsigned char hashes[COPY_PARTS][COPY_HASH];
};

/* How many there are of a file of that size, and the length of one. */
size_t copy_parts(int64_t size);
size_t copy_part_len(int64_t size, size_t part);

void copy_head_make(struct buf *out, const struct copy_head *head);
/* False: it is damaged, or of another file. */
bool copy_head_parse(struct copy_head *head, const void *data, size_t len,
    const char *id);

/* "head", a part, or what a killed one has left of one. */
#define COPY_DRAFT COPY_PARTS
void copy_head_name(const char *id, char name[STORE_NAME_MAX]);
void copy_part_name(const char *id, size_t part, char name[STORE_NAME_MAX]);

void copy_hash(unsigned char hash[COPY_HASH], const void *data, size_t len);

#endif
