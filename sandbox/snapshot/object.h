/* SPDX-License-Identifier: MIT */
#ifndef OBJECT_H
#define OBJECT_H

#include <stddef.h>

#include "../volume/manifest.h"
#include "store.h"

/*
 * What the objects of a snapshot are: a manifest (../volume/manifest.h) whose
 * files are all of one sandbox, and blocks, each a frame of zstd.
 */
#define OBJECT_VOLUMES_MAX 64

void object_manifest_name(const char *id, char name[STORE_NAME_MAX]);
void object_block_name(const char *id, const struct block *block,
    char name[STORE_NAME_MAX]);

/* Read the manifest of that sandbox.  1: there is none; ERR_INPUT: it is
 * damaged, or another one's. */
int object_get_manifest(struct store *s, const char *id, struct manifest *m,
    struct err *err);
/* The same, of bytes. */
bool object_parse_manifest(const char *data, size_t len, const char *id,
    struct manifest *m);
int object_put_manifest(struct store *s, const char *id,
    const struct manifest *m, struct err *err);

/* Compress a block: heap, the caller frees. */
void *object_pack(const unsigned char *data, size_t len, size_t *packed);
/* Unpack it, whole and as it was: block->len bytes. */
int object_unpack(const struct block *block, const void *packed, size_t len,
    unsigned char data[MANIFEST_BLOCK], struct err *err);

#endif
