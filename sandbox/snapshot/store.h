/* SPDX-License-Identifier: MIT */
#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct config;
struct err;

/*
 * Where snapshots are: a folder, or a bucket of an S3 service.  An object is
 * replaced whole or not at all, and has a name of our own making:
 *
 *	<id>/manifest		of a sandbox
 *	<id>/blocks/ab/abcd…	its blocks, by their hash, compressed
 *	files/<uuid>/head	of a file of the HTTP APIs
 *	files/<uuid>/07		its bytes, in parts
 *
 * Requests may go on beside the caller; store_wait() ends when all have ended.
 * The first failure is the answer to every call after it, until it was told by
 * store_wait().
 */
#define STORE_NAME_MAX 160
#define STORE_BLOCK_MAX (80 << 10) /* a block that cannot be compressed */
#define STORE_MANIFEST_MAX ((size_t)64 << 20)
#define STORE_FILES "files"

/* Called when an object is there, or is known not to be (data is NULL).  -1:
 * what it is is wrong, and err says how. */
typedef int (*store_fn)(void *arg, const void *data, size_t len,
    struct err *err);
/* Called for each object of a list: when it was put, in Unix seconds by the
 * clock of the place; 0: that is not known. */
typedef void (*store_list_fn)(void *arg, const char *name, int64_t seconds);

struct store {
	/* Something was saved there once.  Where nothing ever was it may be the
	 * wrong place, and that there is none of one sandbox says nothing. */
	bool used;
	int (*put)(struct store *s, const char *name, const void *data,
	    size_t len, struct err *err);
	int (*fetch)(struct store *s, const char *name, size_t most,
	    store_fn done, void *arg, struct err *err);
	/* One that is not there is as good as deleted. */
	int (*remove)(struct store *s, const char *name, struct err *err);
	/* Each object below a name: a sandbox's id, STORE_FILES. */
	int (*list)(struct store *s, const char *below, store_list_fn fn,
	    void *arg, struct err *err);
	/* All that was put is there to stay. */
	int (*wait)(struct store *s, struct err *err);
	void (*close)(struct store *s);
};

/* By IL_SNAPSHOTS.  NULL: ERR_CONFIG, or the folder cannot be had. */
struct store *store_open(const struct config *config, struct err *err);
void store_close(struct store *s);
#define auto_store __attribute__((cleanup(store_cleanup)))
void store_cleanup(struct store **s);

/* Wait for one object, and put it into an empty buffer.  1: there is none. */
int store_get(struct store *s, const char *name, struct buf *out,
    struct err *err);

/* Is it a name of such an object, of that sandbox or of STORE_FILES? */
bool store_is_name(const char *name, const char *below);

/* folder.c and s3.c */
struct store *folder_open(const struct config *config, struct err *err);
struct store *s3_open(const struct config *config, struct err *err);

#endif
