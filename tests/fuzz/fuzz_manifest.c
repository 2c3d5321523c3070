/* SPDX-License-Identifier: MIT */
/* Manifests of backups: what a disk has kept.  No fuzzer finds the hash at the
 * end, so that it is put there. */
#include "fuzz.h"

#include <sodium.h>

#include "base/basics.h"
#include "volume/manifest.h"

/* The bytes, and then the hash of them. */
static char *
finished(const uint8_t *data, size_t size)
{
	char *text = xmalloc(size + MANIFEST_HASH);

	if (size > 0)
		memcpy(text, data, size);
	(void)crypto_generichash((unsigned char *)text + size, MANIFEST_HASH,
	    data, size, NULL, 0);
	return text;
}

/* Nothing in it is outside of its file, or has a name that leads anywhere. */
static void
check(const struct manifest *m)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	struct manifest second;
	uint64_t blocks = 0;

	for (uint64_t i = 0; i < m->file_count; i++) {
		const struct saved *file = &m->files[i];
		int64_t end = 0;

		fuzz_holds(manifest_is_name(file->name) &&
			strstr(file->name, "/.") == NULL &&
			*file->name != '/' && file->first == blocks,
		    "a name is one of those that there are");
		fuzz_holds(manifest_find(m, file->name) == file,
		    "which is found, and there once");
		for (uint64_t k = 0; k < file->count; k++) {
			const struct block *block = &m->blocks[blocks++];

			fuzz_holds(block->offset >= end && block->len > 0 &&
				block->len <= MANIFEST_BLOCK &&
				block->offset + block->len <= file->size,
			    "a block lies in its file, after the last one");
			end = block->offset + block->len;
		}
	}
	fuzz_holds(blocks == m->block_count, "each block is some file's");
	manifest_print(m, &text);
	fuzz_holds(manifest_parse(&second, buf_str(&text), text.len),
	    "what is printed can be read again");
	fuzz_holds(second.file_count == m->file_count &&
		second.block_count == m->block_count && second.time == m->time,
	    "and is the same");
	manifest_release(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = finished(data, size);
	struct manifest m;

	if (size > 0 && manifest_parse(&m, (const char *)data, size)) {
		check(&m);
		manifest_release(&m);
	}
	if (manifest_parse(&m, text, size + MANIFEST_HASH)) {
		check(&m);
		manifest_release(&m);
	}
	free(text);
	return 0;
}
