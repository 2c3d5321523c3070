/* SPDX-License-Identifier: MIT */
#include "volume/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/text.h"

/* The first line, in front of the time. */
#define HEAD "inline-backup 1 "
#define FILE_NAME "manifest"
#define DRAFT_NAME "manifest.new"
#define LOCK_NAME "lock"
/* Nothing else than a file is waited for, nor followed. */
#define OPEN_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define LINE_MAX_BYTES 256
/* More than there can be: a manifest takes memory by its own length, and every
 * manifest that was written must be readable. */
#define FILES_MAX ((size_t)1 << 32)
#define BLOCKS_MAX ((size_t)1 << 32)
#define SIZE_MOST ((int64_t)4 << 40)
#define HEX_LEN (2 * MANIFEST_HASH)

/* Of a file: network file systems lock no folders.  In a copy that cannot be
 * written to there may be none, and nobody at work. */
int
manifest_lock(int folder, bool alone, struct err *err)
{
	int fd = openat(folder, LOCK_NAME,
	    OPEN_FLAGS | (alone ? O_RDWR | O_CREAT : O_RDONLY), 0600);

	if (fd < 0 && !alone && errno == ENOENT)
		return 0;
	if (fd >= 0 && flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
		return 0; /* it stays open */
	if (fd < 0 || errno != EWOULDBLOCK)
		(void)err_system(err, "lock the backup");
	else
		(void)err_set(err, ERR_BUSY, "another one works on it");
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

void
manifest_release(struct manifest *m)
{
	free(m->files);
	free(m->names);
	free(m->blocks);
	*m = (struct manifest){ .time = 0 };
}

/* Room for one more of them: twice as much each time. */
static void *
manifest_grow(void *items, size_t count, size_t size)
{
	if (count != 0 && (count & (count - 1)) != 0)
		return items;
	items = reallocarray(items, count == 0 ? 1 : 2 * count, size);
	if (items == NULL)
		abort();
	return items;
}

struct saved *
manifest_add(struct manifest *m, const char *name)
{
	struct saved *file;

	m->files = manifest_grow(m->files, m->file_count, sizeof(*m->files));
	file = &m->files[m->file_count++];
	*file = (struct saved){ .first = m->block_count };
	(void)snprintf(file->name, sizeof(file->name), "%s", name);
	return file;
}

void
manifest_add_block(struct manifest *m, const struct block *block)
{
	m->blocks = manifest_grow(m->blocks, m->block_count,
	    sizeof(*m->blocks));
	m->blocks[m->block_count++] = *block;
	m->files[m->file_count - 1].count++;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp((*(const struct saved *const *)a)->name,
	    (*(const struct saved *const *)b)->name);
}

/* NOLINTBEGIN(bugprone-sizeof-expression): pointers are what is sorted */
/* False: two files have one name, and a restore would write one over the
 * other. */
static bool
sort_names(struct manifest *m)
{
	bool good = true;

	m->names = xcalloc(m->file_count + 1, sizeof(*m->names));
	for (size_t i = 0; i < m->file_count; i++)
		m->names[i] = &m->files[i];
	qsort(m->names, m->file_count, sizeof(*m->names), by_name);
	for (size_t i = 1; i < m->file_count; i++)
		good = good && by_name(&m->names[i - 1], &m->names[i]) != 0;
	return good;
}

const struct saved *
manifest_find(const struct manifest *m, const char *name)
{
	struct saved wanted;
	const struct saved *key = &wanted;
	const struct saved *const *found;

	if (m->names == NULL)
		return NULL;
	(void)snprintf(wanted.name, sizeof(wanted.name), "%s", name);
	found = bsearch(&key, m->names, m->file_count, sizeof(*m->names),
	    by_name);
	return found != NULL ? *found : NULL;
}
/* NOLINTEND(bugprone-sizeof-expression) */

/* ---- blocks ---- */

void
block_path(const struct block *block, char path[BLOCK_PATH_SIZE])
{
	char hex[HEX_LEN + 1];

	(void)sodium_bin2hex(hex, sizeof(hex), block->hash, MANIFEST_HASH);
	(void)snprintf(path, BLOCK_PATH_SIZE, "blocks/%.2s/%s", hex, hex);
}

static void
manifest_hash(unsigned char out[MANIFEST_HASH], const unsigned char *data,
    size_t len)
{
	(void)crypto_generichash(out, MANIFEST_HASH, data, len, NULL, 0);
}

bool
block_is(const struct block *block, const unsigned char *data)
{
	unsigned char found[MANIFEST_HASH];

	manifest_hash(found, data, block->len);
	return memcmp(found, block->hash, MANIFEST_HASH) == 0;
}

static int
by_hash(const void *a, const void *b)
{
	return memcmp(((const struct block *)a)->hash,
	    ((const struct block *)b)->hash, MANIFEST_HASH);
}

struct block *
blocks_sorted(const struct manifest *m)
{
	struct block *blocks = xcalloc(m->block_count + 1, sizeof(*blocks));

	if (m->block_count > 0)
		memcpy(blocks, m->blocks, m->block_count * sizeof(*blocks));
	qsort(blocks, m->block_count, sizeof(*blocks), by_hash);
	return blocks;
}

bool
blocks_have(const struct block *sorted, size_t count, const struct block *block)
{
	return bsearch(block, sorted, count, sizeof(*block), by_hash) != NULL;
}

int
block_load(int fd, const struct block *block, unsigned char *data,
    struct err *err)
{
	ssize_t got = pread(fd, data, block->len, block->offset);

	if (got == (ssize_t)block->len)
		return 0;
	return got < 0 ? err_system(err, "read") :
			 err_set(err, ERR_CONFLICT, "it got shorter");
}

/* A full disk may store a part of it; the write of the rest says why. */
int
block_store(int fd, const struct block *block, const unsigned char *data,
    struct err *err)
{
	return lseek(fd, block->offset, SEEK_SET) < 0 ?
	    err_system(err, "write") :
	    fd_write_all(fd, data, block->len, err);
}

/* As good as a hole? */
static bool
is_zero(const unsigned char *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

/* The block, from `at` on, that holds data; up to *hole all do.  size: none. */
static int64_t
next_data(int fd, int64_t at, int64_t size, int64_t *hole)
{
	int64_t data;

	if (at < *hole)
		return at;
	data = lseek(fd, at, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		return size; /* the rest is a hole */
	if (data < 0)
		data = at; /* it knows of none */
	*hole = lseek(fd, data, SEEK_HOLE);
	if (*hole <= data)
		*hole = size;
	return data - data % MANIFEST_BLOCK;
}

int
manifest_add_data(struct manifest *m, int fd, int64_t size, block_fn fn,
    void *arg, struct err *err)
{
	auto_free unsigned char *data = xmalloc(MANIFEST_BLOCK);
	int64_t hole = 0;
	int64_t at = next_data(fd, 0, size, &hole);
	int result = 0;

	m->files[m->file_count - 1].size = size;
	for (; result == 0 && at < size;
	     at = next_data(fd, at + MANIFEST_BLOCK, size, &hole)) {
		struct block block = { .offset = at, .len = MANIFEST_BLOCK };

		if (size - at < MANIFEST_BLOCK)
			block.len = (uint32_t)(size - at);
		if (block_load(fd, &block, data, err) != 0)
			return -1;
		if (is_zero(data, block.len))
			continue;
		manifest_hash(block.hash, data, block.len);
		manifest_add_block(m, &block);
		result = fn != NULL ? fn(arg, &block, data, err) : 0;
	}
	return result;
}

int
block_read(int folder, const struct block *block, unsigned char *data,
    struct err *err)
{
	char path[BLOCK_PATH_SIZE];
	auto_close int fd = -1;
	unsigned char more;

	block_path(block, path);
	fd = openat(folder, path, O_RDONLY | OPEN_FLAGS);
	if (fd < 0)
		return err_system(err, "the backup is damaged: %s", path);
	if (pread(fd, data, block->len, 0) != (ssize_t)block->len ||
	    pread(fd, &more, 1, block->len) != 0)
		return err_set(err, ERR_INPUT,
		    "the backup is damaged: %s has another length", path);
	if (!block_is(block, data))
		return err_set(err, ERR_INPUT,
		    "the backup is damaged: %s holds something else", path);
	return 0;
}

int
manifest_fill(const struct manifest *m, int folder, const struct saved *file,
    int fd, struct err *err)
{
	auto_free unsigned char *data = xmalloc(MANIFEST_BLOCK);

	if (ftruncate(fd, file->size) != 0)
		return err_system(err, "write %s", file->name);
	for (size_t i = 0; i < file->count; i++) {
		const struct block *block = &m->blocks[file->first + i];

		if (block_read(folder, block, data, err) != 0)
			return -1;
		if (block_store(fd, block, data, err) != 0)
			return err_wrap(err, "%s", file->name);
	}
	return 0;
}

/* ---- reading ---- */

bool
manifest_is_name(const char *name)
{
	const char *volume = name + 33;
	size_t len;

	if (strcmp(name, MANIFEST_DATABASE) == 0 ||
	    strcmp(name, MANIFEST_UIDS) == 0)
		return true;
	if (strspn(name, "0123456789abcdef") != 32 || name[32] != '/')
		return false;
	len = strlen(volume);
	return len == 0 ||
	    (len > 5 && len < 64 && strcmp(volume + len - 5, ".ext4") == 0 &&
		strspn(volume, "abcdefghijklmnopqrstuvwxyz0123456789.-") ==
		    len &&
		volume[0] != '.');
}

/* The line of a file, and of a block. */
static void
print_file(char line[LINE_MAX_BYTES], const struct saved *file)
{
	(void)snprintf(line, LINE_MAX_BYTES,
	    "f %u %u %u %" PRId64 " %" PRId64 " %zu %s", file->mode, file->uid,
	    file->gid, file->size, file->mtime_ns, file->count, file->name);
}

static void
print_block(char line[LINE_MAX_BYTES], const struct block *block)
{
	char hex[HEX_LEN + 1];

	(void)sodium_bin2hex(hex, sizeof(hex), block->hash, MANIFEST_HASH);
	(void)snprintf(line, LINE_MAX_BYTES, "b %" PRId64 " %u %s",
	    block->offset, block->len, hex);
}

/* A line is good only as it would be printed: without blanks, signs, leading
 * zeros, or a number that does not fit. */
/* NOLINTBEGIN(cert-err34-c): what does not fit is printed otherwise */
static bool
manifest_parse_file(struct manifest *m, const char *line, size_t *left)
{
	struct saved file = { .first = m->block_count };
	char again[LINE_MAX_BYTES];

	if (*left != 0 || m->file_count >= FILES_MAX ||
	    sscanf(line, "f %u %u %u %" SCNd64 " %" SCNd64 " %zu %99s",
		&file.mode, &file.uid, &file.gid, &file.size, &file.mtime_ns,
		&file.count, file.name) != 7)
		return false;
	print_file(again, &file);
	if (strcmp(line, again) != 0 || file.mode > 0777 ||
	    file.uid == UINT32_MAX || file.gid == UINT32_MAX || file.size < 0 ||
	    file.size > SIZE_MOST || file.mtime_ns < 0 ||
	    file.count > BLOCKS_MAX || !manifest_is_name(file.name))
		return false;
	*left = file.count;
	file.count = 0;
	*manifest_add(m, file.name) = file;
	return true;
}

/* In their order, within their file. */
static bool
manifest_parse_block(struct manifest *m, const char *line, size_t *left)
{
	const struct saved *file = m->files + m->file_count;
	struct block block;
	char again[LINE_MAX_BYTES];
	char hex[HEX_LEN + 1];

	if (*left == 0 || m->block_count >= BLOCKS_MAX ||
	    sscanf(line, "b %" SCNd64 " %u %64s", &block.offset, &block.len,
		hex) != 3 ||
	    !text_parse_hex(hex, strlen(hex), block.hash, MANIFEST_HASH))
		return false;
	print_block(again, &block);
	file--;
	if (strcmp(line, again) != 0 || block.offset < 0 ||
	    block.offset % MANIFEST_BLOCK != 0 || block.len == 0 ||
	    block.len > MANIFEST_BLOCK ||
	    block.offset > file->size - block.len ||
	    (file->count > 0 &&
		block.offset <= m->blocks[m->block_count - 1].offset))
		return false;
	manifest_add_block(m, &block);
	--*left;
	return true;
}
/* NOLINTEND(cert-err34-c) */

/* all: the hash of the lines so far, each with a NUL at its end. */
static bool
is_the_end(crypto_generichash_state *all, const char *hex)
{
	unsigned char want[MANIFEST_HASH];
	unsigned char found[MANIFEST_HASH];

	(void)crypto_generichash_final(all, found, sizeof(found));
	return hex != NULL &&
	    text_parse_hex(hex, strlen(hex), want, sizeof(want)) &&
	    memcmp(want, found, sizeof(found)) == 0;
}

bool
manifest_parse(struct manifest *m, FILE *in)
{
	crypto_generichash_state all;
	char line[LINE_MAX_BYTES];
	size_t left = 0;
	bool good = true;

	*m = (struct manifest){ .time = 0 };
	(void)crypto_generichash_init(&all, NULL, 0, MANIFEST_HASH);
	for (size_t i = 0; good && fgets(line, sizeof(line), in) != NULL; i++) {
		size_t len = strlen(line);

		if (len == 0 || line[len - 1] != '\n')
			break;
		line[len - 1] = '\0';
		if (strncmp(line, "e ", 2) == 0) {
			if (i > 0 && left == 0 && is_the_end(&all, line + 2) &&
			    fgetc(in) == EOF && sort_names(m))
				return true;
			break;
		}
		(void)crypto_generichash_update(&all,
		    (const unsigned char *)line, len);
		if (i > 0)
			good = manifest_parse_file(m, line, &left) ||
			    manifest_parse_block(m, line, &left);
		else
			good = strncmp(line, HEAD, strlen(HEAD)) == 0 &&
			    text_parse_int(line + strlen(HEAD), 0, INT64_MAX,
				&m->time);
	}
	manifest_release(m);
	return false;
}

int
manifest_read(int folder, struct manifest *m, struct err *err)
{
	int fd = openat(folder, FILE_NAME, O_RDONLY | OPEN_FLAGS);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	bool good;

	*m = (struct manifest){ .time = 0 };
	if (in == NULL && errno == ENOENT)
		return 1;
	if (in == NULL)
		return err_system(err, "open the manifest");
	good = manifest_parse(m, in);
	(void)fclose(in);
	if (good)
		return 0;
	return err_set(err, ERR_INPUT,
	    "the backup is damaged: its manifest is not whole");
}

/* ---- writing ---- */

/* Hashed with a NUL for the line's end, as it is when it is read. */
static void
put_line(FILE *out, crypto_generichash_state *all, const char *line)
{
	(void)fprintf(out, "%s\n", line);
	(void)crypto_generichash_update(all, (const unsigned char *)line,
	    strlen(line) + 1);
}

bool
manifest_print(const struct manifest *m, FILE *out)
{
	crypto_generichash_state all;
	unsigned char hash[MANIFEST_HASH];
	char hex[HEX_LEN + 1];
	char line[LINE_MAX_BYTES];

	(void)crypto_generichash_init(&all, NULL, 0, MANIFEST_HASH);
	(void)snprintf(line, sizeof(line), HEAD "%" PRId64, m->time);
	put_line(out, &all, line);
	for (size_t i = 0; i < m->file_count; i++) {
		const struct saved *file = &m->files[i];

		print_file(line, file);
		put_line(out, &all, line);
		for (size_t k = 0; k < file->count; k++) {
			print_block(line, &m->blocks[file->first + k]);
			put_line(out, &all, line);
		}
	}
	(void)crypto_generichash_final(&all, hash, sizeof(hash));
	(void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	(void)fprintf(out, "e %s\n", hex);
	return fflush(out) == 0 && ferror(out) == 0;
}

int
manifest_write(int folder, const struct manifest *m, struct err *err)
{
	int fd = openat(folder, DRAFT_NAME,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	bool good;

	if (out == NULL)
		return err_system(err, "write the manifest");
	good = manifest_print(m, out) && fsync(fd) == 0;
	good = fclose(out) == 0 && good;
	if (!good || renameat(folder, DRAFT_NAME, folder, FILE_NAME) != 0 ||
	    fsync(folder) != 0)
		return err_system(err, "write the manifest");
	return 0;
}
