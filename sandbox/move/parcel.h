/* SPDX-License-Identifier: MIT */
#ifndef PARCEL_H
#define PARCEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "volume/manifest.h"

struct config;
struct db;
struct err;

/*
 * A person on the way from one node to another, or out of a backup, as one
 * stream:
 *
 *	PARCEL_HEAD bytes of text, filled up with line feeds: "inline-person 1
 *	NODE ROWS MANIFEST BLOCKS HASH": to whom, three lengths, and the hash of
 *	the rows
 *	the rows (store/moves.h)
 *	the manifest of the sandbox's volumes (volume/manifest.h), if there are,
 *	which has the hashes of itself and of the blocks
 *	the blocks, one after another, in the order of the manifest
 */
#define PARCEL_HEAD 192
#define PARCEL_NODE_MAX 63
#define PARCEL_MANIFEST_MAX ((size_t)64 << 20)
#define PARCEL_BLOCKS_MAX (INT64_C(1) << 40)

struct parcel_head {
	char node[PARCEL_NODE_MAX + 1]; /* for whom; "": for this host alone */
	size_t rows;
	size_t manifest;
	int64_t blocks;
	unsigned char hash[MANIFEST_HASH];
};

void parcel_head_print(const struct parcel_head *head, char text[PARCEL_HEAD]);
/* ERR_INPUT: it is none. */
int parcel_head_read(struct parcel_head *head, const char text[PARCEL_HEAD],
    struct err *err);
/* All of a stream with this head. */
int64_t parcel_size(const struct parcel_head *head);

/* Gives the next bytes of a stream, so many. */
typedef int (*parcel_source)(void *arg, void *data, size_t len,
    struct err *err);

struct parcel {
	struct parcel_head head;
	struct buf rows;
	struct buf text; /* of the manifest */
	struct manifest manifest;
	/* Where the blocks are: in the stream, or of each file a descriptor, or
	 * in a backup's folder. */
	parcel_source source;
	void *arg;
	int *volumes;
	int backup;
};

void parcel_init(struct parcel *p);
/* The volumes' locks are given back, too. */
void parcel_release(struct parcel *p);

/* Take the rows of a person out of a database, and, where they have a sandbox
 * with files, its volumes: each is locked within wait_ms (ERR_BUSY: somebody
 * has it) and stays so.  node: for whom. */
int parcel_pack(struct parcel *p, const struct config *config, struct db *db,
    int64_t user_id, const char *node, int64_t wait_ms, struct err *err);
/* The same out of a backup: its folder, which is borrowed, its manifest, and
 * the database that is in there. */
int parcel_pack_saved(struct parcel *p, int backup, const struct manifest *m,
    struct db *db, int64_t user_id, const char *node, struct err *err);
/* The same out of a stream of this size, up to the blocks.  All of it is
 * checked but what the rows say.  ERR_INPUT: it is wrong. */
int parcel_receive(struct parcel *p, int64_t size, parcel_source source,
    void *arg, struct err *err);

/* The bytes of a block, those of a stream in their order.  ERR_INPUT: not what
 * the manifest says; of a volume ERR_CONFLICT: it has changed. */
int parcel_load(const struct parcel *p, const struct saved *file,
    const struct block *block, unsigned char *data, struct err *err);
/* Give the whole stream to a function, piece by piece; what it returns, if it
 * is not 0, is returned. */
typedef int (*parcel_fn)(void *arg, const void *data, size_t len,
    struct err *err);
int parcel_send(const struct parcel *p, parcel_fn fn, void *arg,
    struct err *err);

#endif
