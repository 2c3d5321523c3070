/* SPDX-License-Identifier: MIT */
#ifndef PARCEL_H
#define PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/basics.h"
#include "volume/manifest.h"

struct config;
struct db;

/*
 * A person on the way from one node to another, or out of a backup, as one
 * stream:
 *
 *	struct parcel_head, as it is in memory on a little-endian machine
 *	the rows (store/moves.h)
 *	the manifest of the sandbox's volumes (volume/manifest.h), if there are
 *	any, with the hashes of itself and of the blocks
 *	the blocks, one after another, in the order of the manifest
 */
#define PARCEL_WORD "inline-person 2"
#define PARCEL_NODE_MAX 63
#define PARCEL_MANIFEST_MAX ((size_t)64 << 20)
#define PARCEL_BLOCKS_MAX (INT64_C(1) << 40)

struct parcel_head {
	char word[sizeof(PARCEL_WORD)];
	char node[PARCEL_NODE_MAX + 1]; /* the receiver; "": this host */
	int64_t rows;			/* bytes of each part */
	int64_t manifest;
	int64_t blocks;
	unsigned char hash[MANIFEST_HASH]; /* of the rows */
};

/* Can it be the head of a stream that came from elsewhere? */
bool parcel_head_is_good(const struct parcel_head *head);
/* The length of a stream with this head. */
int64_t parcel_size(const struct parcel_head *head);

/* Reads the next len bytes of a stream. */
typedef int (*parcel_source)(void *arg, void *data, size_t len,
    struct err *err);

struct parcel {
	struct parcel_head head;
	struct buf rows;
	struct buf text; /* of the manifest */
	struct manifest manifest;
	/* The blocks come from one of three places: the stream, a descriptor
	 * of each file, or a backup's folder. */
	parcel_source source;
	void *arg;
	int *volumes;
	int backup;
};

void parcel_init(struct parcel *p);
/* Unlocks the volumes, too. */
void parcel_release(struct parcel *p);

/* Pack a person's rows, and the volumes of their sandbox if it has files.  Each
 * volume is locked within wait_ms, and stays locked until parcel_release().
 * node: the receiver.  ERR_BUSY: a volume is in use. */
int parcel_pack(struct parcel *p, const struct config *config, struct db *db,
    int64_t user_id, const char *node, int64_t wait_ms, struct err *err);
/* The same from a backup: its folder, which is borrowed, its manifest, and its
 * database. */
int parcel_pack_saved(struct parcel *p, int backup, const struct manifest *m,
    struct db *db, int64_t user_id, const char *node, struct err *err);
/* The same from a stream of this size, up to the blocks.  All of it is checked
 * but the contents of the rows.  ERR_INPUT: it is wrong. */
int parcel_receive(struct parcel *p, int64_t size, parcel_source source,
    void *arg, struct err *err);

/* Pass the whole stream to a function, piece by piece, until it returns
 * something else than 0, which is returned. */
typedef int (*parcel_fn)(void *arg, const void *data, size_t len,
    struct err *err);
int parcel_send(const struct parcel *p, parcel_fn fn, void *arg,
    struct err *err);

/* ---- arrivals ---- */

/* The status of il-node's answer to a person or a slot who comes, by what was
 * wrong (ERR_NONE: 200); and what an answer of il-node or nginx means.  After
 * ERR_UNKNOWN nobody knows whether they are there; after all others they are
 * not.  ERR_BUSY, after which a sender goes on with others, is nginx's
 * alone. */
int arrival_status(enum err_code code);
enum err_code arrival_code(int status);

/*
 * The files of an arriving person have no names while they are written.  Each
 * block is compared with its hash.  When all files are on the disk they get
 * their names in a folder of the sandbox's name, and then the rows are
 * inserted.  So the person is here wholly, or not at all, whatever dies.
 */

/* Store a parcel, which may be anything and is checked.  base: the folder
 * IL_BASE_DIR.  1: the person was here before.  ERR_INPUT: the parcel is wrong.
 * ERR_LIMIT: the disk has no room.  ERR_CONFLICT: the person has other data
 * here.  ERR_UNKNOWN: nobody knows whether
 * the person is here; after all other errors the person is not. */
int arrival_store(struct db *db, int base, int64_t user_id,
    const struct parcel *p, struct err *err);

/* ---- volumes ---- */

/* Call fn with the open folder of a sandbox and the name of each volume, until
 * it returns something else than 0, which is returned.  ERR_NOT_FOUND: there is
 * no such folder. */
typedef int (*volume_fn)(void *arg, int folder, const char *sandbox,
    const char *name, struct err *err);
int volumes_each(const char *base, const char *sandbox, volume_fn fn, void *arg,
    struct err *err);

/* Take the lock of a volume's open file, which says that the volume is mounted
 * nowhere.  The broker ends the sandbox's warm cell for it, and
 * its runs are waited for.  A program that needs the sandbox meanwhile waits
 * for us, as for another cell.  False: the volume is still in use. */
bool volume_lock(const struct config *config, int fd, const char *sandbox,
    int64_t wait_ms);

#endif
