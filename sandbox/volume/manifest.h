/* SPDX-License-Identifier: MIT */
#ifndef MANIFEST_H
#define MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

/*
 * A backup is a folder with
 *
 *	manifest	which files, of which blocks, each with its hash;
 *			replaced as a whole when all blocks are on the disk
 *	blocks/ab/…	the blocks, by their hash: one that has not changed
 *			is there already
 *	lock		empty: locked by the process that is at work here
 *
 * A manifest is its time and two counts, the files in the order of their names,
 * the blocks in the order of their files, all as they are in memory on a
 * little-endian machine, and the hash of that.  All of it is checked when it is
 * read: names, numbers, order, and the hash.
 */
#define MANIFEST_BLOCK 65536
#define MANIFEST_HASH 32
#define MANIFEST_NAME_MAX 100
#define MANIFEST_DATABASE ".database" /* the first file */
#define MANIFEST_UIDS "uids"	      /* the last one */

struct block {
	int64_t offset; /* a multiple of MANIFEST_BLOCK */
	int64_t len;
	unsigned char hash[MANIFEST_HASH];
};

struct saved {
	char name[MANIFEST_NAME_MAX];
	uint32_t mode;
	uint32_t uid;
	uint32_t gid;
	int64_t size;
	int64_t mtime_ns; /* 0: not to be relied on */
	uint64_t first;	  /* of its blocks */
	uint64_t count;
};

struct manifest {
	int64_t time; /* Unix seconds */
	uint64_t file_count;
	uint64_t block_count;
	struct saved *files;
	struct block *blocks;
};

/* Lock the folder until this process ends: alone to make a backup, shared to
 * read it. */
int manifest_lock(int folder, bool alone, struct err *err);

void manifest_release(struct manifest *m);

/* Parse a manifest, to which nothing may be added; false: it is damaged, or
 * names a file twice, and m is empty.  Append it to a buffer. */
bool manifest_parse(struct manifest *m, const char *data, size_t len);
void manifest_print(const struct manifest *m, struct buf *out);
/* Read that of a backup's folder.  1: there is none; -1: it is damaged. */
int manifest_read(int folder, struct manifest *m, struct err *err);
/* Put it in the place of the last one, durably. */
int manifest_write(int folder, const struct manifest *m, struct err *err);

/* Is it the name of a file in a backup?  No other name is ever written. */
bool manifest_is_name(const char *name);
/* Append a file, whose name comes behind all others. */
struct saved *manifest_add(struct manifest *m, const char *name);
/* Append a file of another manifest, with its blocks. */
void manifest_copy(struct manifest *m, const struct manifest *from,
    const struct saved *file);
/* The bytes of all blocks. */
int64_t manifest_bytes(const struct manifest *m);
/* Find a file; NULL: there is none. */
const struct saved *manifest_find(const struct manifest *m, const char *name);

/* blocks/ab/abcd…, and its room. */
#define BLOCK_PATH_SIZE 80
void block_path(const struct block *block, char path[BLOCK_PATH_SIZE]);
/* Has it the hash of these bytes, block->len of them? */
bool block_is(const struct block *block, const unsigned char *data);
/* Read its bytes from where it is in a file; write them there. */
int block_load(int fd, const struct block *block, unsigned char *data,
    struct err *err);
int block_store(int fd, const struct block *block, const unsigned char *data,
    struct err *err);
/* Read it out of a backup's folder, whole and as it was. */
int block_read(int folder, const struct block *block, unsigned char *data,
    struct err *err);

/* Append the blocks of the file that was appended last, without its holes.  fd:
 * the open file; size: its length.  fn, or NULL, is called with each block and
 * its bytes, until it returns something else than 0, which is returned. */
typedef int (*block_fn)(void *arg, const struct block *block,
    const unsigned char *data, struct err *err);
int manifest_add_data(struct manifest *m, int fd, int64_t size, block_fn fn,
    void *arg, struct err *err);
/* Write a file as the backup in the folder has it. */
int manifest_fill(const struct manifest *m, int folder,
    const struct saved *file, int fd, struct err *err);

/* All of a manifest in the order of their hashes, which the caller frees; is
 * there one of that hash in them? */
struct block *blocks_sorted(const struct manifest *m);
bool blocks_have(const struct block *sorted, size_t count,
    const struct block *block);

#endif
