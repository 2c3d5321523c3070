/* SPDX-License-Identifier: MIT */
#include "object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/log.h"

#define LEVEL 3 /* zstd's own default */

void
object_manifest_name(const char *id, char name[STORE_NAME_MAX])
{
	(void)snprintf(name, STORE_NAME_MAX, "%s/manifest", id);
}

void
object_block_name(const char *id, const struct block *block,
    char name[STORE_NAME_MAX])
{
	char path[BLOCK_PATH_SIZE];

	block_path(block, path);
	(void)snprintf(name, STORE_NAME_MAX, "%s/%s", id, path);
}

/* All of its files are that sandbox's, each is there once, and one is its
 * workspace. */
static bool
is_of(const struct manifest *m, const char *id)
{
	auto_free char *workspace = xprintf("%s/workspace.ext4", id);

	if (m->file_count > OBJECT_VOLUMES_MAX)
		return false;
	for (size_t i = 0; i < m->file_count; i++)
		if (strncmp(m->files[i].name, id, strlen(id)) != 0 ||
		    m->files[i].name[strlen(id)] != '/' ||
		    manifest_find(m, m->files[i].name) != &m->files[i])
			return false;
	return manifest_find(m, workspace) != NULL;
}

bool
object_parse_manifest(const char *data, size_t len, const char *id,
    struct manifest *m)
{
	/* it needs a byte, and the pointer is not written through */
	FILE *in = len == 0 ? NULL :
			      fmemopen((void *)(uintptr_t)data, len, "r");
	bool good = in != NULL && manifest_parse(m, MANIFEST_OF_SNAPSHOT, in);

	if (in != NULL)
		(void)fclose(in);
	else
		*m = (struct manifest){ .time = 0 };
	if (good && is_of(m, id))
		return true;
	manifest_release(m);
	return false;
}

int
object_get_manifest(struct store *s, const char *id, struct manifest *m,
    struct err *err)
{
	auto_buf struct buf text = BUF_INIT(STORE_MANIFEST_MAX);
	char name[STORE_NAME_MAX];
	int rc;

	*m = (struct manifest){ .time = 0 };
	object_manifest_name(id, name);
	rc = store_get(s, name, &text, err);
	if (rc != 0)
		return rc;
	if (object_parse_manifest(buf_str(&text), text.len, id, m))
		return 0;
	return err_set(err, ERR_INPUT,
	    "the snapshot is damaged, or another sandbox's: its manifest");
}

int
object_put_manifest(struct store *s, const char *id, const struct manifest *m,
    struct err *err)
{
	char name[STORE_NAME_MAX];
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	bool good = out != NULL && manifest_print(m, MANIFEST_OF_SNAPSHOT, out);
	int rc;

	if (out == NULL || fclose(out) != 0 || !good)
		log_fatal(1, "out of memory");
	object_manifest_name(id, name);
	if (len > STORE_MANIFEST_MAX)
		rc = err_set(err, ERR_LIMIT, "%s: too many blocks", id);
	else
		rc = s->put(s, name, text, len, err);
	free(text);
	return rc;
}

void *
object_pack(const unsigned char *data, size_t len, size_t *packed)
{
	size_t room = ZSTD_compressBound(len);
	void *out = xmalloc(room);

	*packed = ZSTD_compress(out, room, data, len, LEVEL);
	if (ZSTD_isError(*packed))
		log_fatal(1, "zstd: %s", ZSTD_getErrorName(*packed));
	return out;
}

/* Never more than a block is unpacked, whatever the frame says of itself. */
int
object_unpack(const struct block *block, const void *packed, size_t len,
    unsigned char data[MANIFEST_BLOCK], struct err *err)
{
	struct block found = *block;
	size_t got = ZSTD_decompress(data, MANIFEST_BLOCK, packed, len);

	if (!ZSTD_isError(got) && got == block->len) {
		block_hash(&found, data);
		if (memcmp(found.hash, block->hash, MANIFEST_HASH) == 0)
			return 0;
	}
	return err_set(err, ERR_INPUT,
	    "the snapshot is damaged: a block holds something else");
}
