/* SPDX-License-Identifier: MIT */
/* Manifests of backups: what a disk has kept.  No fuzzer finds the hash at the
 * end, so that it is put there. */
#include "fuzz.h"

#include <sodium.h>

#include "volume/manifest.h"

static bool
parse(const char *text, size_t len, struct manifest *m)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, len, "r");
	bool good = in != NULL && manifest_parse(m, in);

	if (in != NULL)
		(void)fclose(in);
	return good;
}

/* The lines, and then the hash of them. */
static char *
finished(const uint8_t *data, size_t size, size_t *len)
{
	crypto_generichash_state all;
	unsigned char hash[MANIFEST_HASH];
	char hex[2 * MANIFEST_HASH + 1];
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	char *copy = fuzz_text(data, size);

	(void)crypto_generichash_init(&all, NULL, 0, MANIFEST_HASH);
	for (char *rest = copy, *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (*line == '\0')
			continue;
		(void)fprintf(out, "%s\n", line);
		(void)crypto_generichash_update(&all, (unsigned char *)line,
		    strlen(line) + 1);
	}
	(void)crypto_generichash_final(&all, hash, sizeof(hash));
	(void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	(void)fprintf(out, "e %s\n", hex);
	(void)fclose(out);
	free(copy);
	return text;
}

/* Nothing in it is outside of its file, or has a name that leads anywhere. */
static void
check(const struct manifest *m)
{
	struct manifest second;
	char *text = NULL;
	size_t len = 0;
	size_t blocks = 0;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; i < m->file_count; i++) {
		const struct saved *file = &m->files[i];
		int64_t end = 0;

		fuzz_holds(manifest_is_name(file->name) &&
			strstr(file->name, "/.") == NULL &&
			*file->name != '/' && file->first == blocks,
		    "a name is one of those that there are");
		for (size_t k = 0; k < file->count; k++) {
			const struct block *block = &m->blocks[blocks++];

			fuzz_holds(block->offset >= end && block->len > 0 &&
				block->len <= MANIFEST_BLOCK &&
				block->offset + block->len <= file->size,
			    "a block lies in its file, after the last one");
			end = block->offset + block->len;
		}
	}
	fuzz_holds(blocks == m->block_count, "each block is some file's");
	fuzz_holds(manifest_print(m, out) && fclose(out) == 0,
	    "it can be printed");
	fuzz_holds(parse(text, len, &second), "and be read again");
	fuzz_holds(second.file_count == m->file_count &&
		second.block_count == m->block_count && second.time == m->time,
	    "and is the same");
	manifest_release(&second);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = 0;
	char *text = finished(data, size, &len);
	struct manifest m;

	if (size > 0 && parse((const char *)data, size, &m)) {
		check(&m);
		manifest_release(&m);
	}
	if (parse(text, len, &m)) {
		check(&m);
		manifest_release(&m);
	}
	free(text);
	return 0;
}
