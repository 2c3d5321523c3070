/* SPDX-License-Identifier: MIT */
#include "volume/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/fd.h"

/* The beginning of a manifest; its files, blocks and hash follow. */
#define WORD "inline-backup "
#define VERSION "2"
struct manifest_head {
	char word[sizeof(WORD VERSION)];
	int64_t time;
	uint64_t files;
	uint64_t blocks;
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&
	sizeof(struct manifest_head) == 40 && sizeof(struct saved) == 144 &&
	sizeof(struct block) == 48,
    "a manifest is the same on all machines, and has no gaps");

#define FILE_NAME "manifest"
#define DRAFT_NAME "manifest.new"
#define LOCK_NAME "lock"
/* Nothing else than a file is waited for, nor followed. */
#define OPEN_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define SIZE_MOST ((int64_t)4 << 40)

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

static void
manifest_add_block(struct manifest *m, const struct block *block)
{
	m->blocks = manifest_grow(m->blocks, m->block_count,
	    sizeof(*m->blocks));
	m->blocks[m->block_count++] = *block;
	m->files[m->file_count - 1].count++;
}

void
manifest_copy(struct manifest *m, const struct manifest *from,
    const struct saved *file)
{
	struct saved *copy = manifest_add(m, file->name);

	*copy = *file;
	copy->first = m->block_count;
	copy->count = 0;
	for (uint64_t i = 0; i < file->count; i++)
		manifest_add_block(m, &from->blocks[file->first + i]);
}

int64_t
manifest_bytes(const struct manifest *m)
{
	int64_t sum = 0;

	for (uint64_t i = 0; i < m->block_count; i++)
		sum += m->blocks[i].len;
	return sum;
}

static int
by_name(const void *name, const void *file)
{
	return strcmp(name, ((const struct saved *)file)->name);
}

const struct saved *
manifest_find(const struct manifest *m, const char *name)
{
	return m->file_count == 0 ?
	    NULL :
	    bsearch(name, m->files, m->file_count, sizeof(*m->files), by_name);
}

/* ---- blocks ---- */

void
block_path(const struct block *block, char path[BLOCK_PATH_SIZE])
{
	char hex[2 * MANIFEST_HASH + 1];

	(void)sodium_bin2hex(hex, sizeof(hex), block->hash, MANIFEST_HASH);
	(void)snprintf(path, BLOCK_PATH_SIZE, "blocks/%.2s/%s", hex, hex);
}

static void
manifest_hash(unsigned char out[MANIFEST_HASH], const void *data, size_t len)
{
	(void)crypto_generichash(out, MANIFEST_HASH, data, len, NULL, 0);
}

bool
block_is(const struct block *block, const unsigned char *data)
{
	unsigned char found[MANIFEST_HASH];

	manifest_hash(found, data, (size_t)block->len);
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
	ssize_t got = pread(fd, data, (size_t)block->len, block->offset);

	if (got == block->len)
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
	    fd_write_all(fd, data, (size_t)block->len, err);
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
			block.len = size - at;
		if (block_load(fd, &block, data, err) != 0)
			return -1;
		if (is_zero(data, (size_t)block.len))
			continue;
		manifest_hash(block.hash, data, (size_t)block.len);
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
	if (pread(fd, data, (size_t)block->len, 0) != block->len ||
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
	return len > 5 && len < 64 && strcmp(volume + len - 5, ".ext4") == 0 &&
	    strspn(volume, "abcdefghijklmnopqrstuvwxyz0123456789.-") == len &&
	    volume[0] != '.';
}

/* Are the name, the numbers and the blocks, of which the first is known, those
 * of a file behind the one before? */
static bool
manifest_check_file(const struct manifest *m, const struct saved *file,
    uint64_t first)
{
	int64_t end = 0;

	if (file->first != first || file->count > m->block_count - first ||
	    memchr(file->name, '\0', sizeof(file->name)) == NULL ||
	    !manifest_is_name(file->name) ||
	    (file > m->files && strcmp(file[-1].name, file->name) >= 0) ||
	    file->mode > 0777 || file->uid == UINT32_MAX ||
	    file->gid == UINT32_MAX || file->size < 0 ||
	    file->size > SIZE_MOST || file->mtime_ns < 0)
		return false;
	for (uint64_t i = first; i < first + file->count; i++) {
		const struct block *block = &m->blocks[i];

		if (block->offset < end ||
		    block->offset % MANIFEST_BLOCK != 0 || block->len <= 0 ||
		    block->len > MANIFEST_BLOCK ||
		    block->offset > file->size - block->len)
			return false;
		end = block->offset + MANIFEST_BLOCK;
	}
	return true;
}

/* A manifest in parts; the last one is the hash of the others. */
struct manifest_parts {
	struct manifest_head head;
	unsigned char hash[MANIFEST_HASH];
	struct iovec of[4];
};

static void
manifest_part(const struct manifest *m, struct manifest_parts *p)
{
	crypto_generichash_state state;

	*p = (struct manifest_parts){
		.head = { WORD VERSION, m->time, m->file_count,
		    m->block_count },
		.of = { { &p->head, sizeof(p->head) },
		    { m->files, m->file_count * sizeof(*m->files) },
		    { m->blocks, m->block_count * sizeof(*m->blocks) },
		    { p->hash, sizeof(p->hash) } },
	};
	(void)crypto_generichash_init(&state, NULL, 0, sizeof(p->hash));
	for (size_t i = 0; i < 3; i++)
		(void)crypto_generichash_update(&state, p->of[i].iov_base,
		    p->of[i].iov_len);
	(void)crypto_generichash_final(&state, p->hash, sizeof(p->hash));
}

/* Do the parts that were read fit the hash behind them, and each other? */
static bool
manifest_check(const struct manifest *m,
    const unsigned char hash[MANIFEST_HASH])
{
	struct manifest_parts p;
	uint64_t blocks = 0;

	manifest_part(m, &p);
	if (memcmp(hash, p.hash, sizeof(p.hash)) != 0)
		return false;
	for (uint64_t i = 0; i < m->file_count; i++) {
		if (!manifest_check_file(m, &m->files[i], blocks))
			return false;
		blocks += m->files[i].count;
	}
	return blocks == m->block_count;
}

/* Nothing is allocated before the counts fit the length. */
static bool
manifest_load(struct manifest *m, FILE *in, uint64_t len)
{
	struct manifest_head head;
	unsigned char hash[MANIFEST_HASH];
	uint64_t left = len - sizeof(head) - sizeof(hash);

	*m = (struct manifest){ .time = 0 };
	if (len < sizeof(head) + sizeof(hash) ||
	    fread(&head, sizeof(head), 1, in) != 1 ||
	    memcmp(head.word, WORD VERSION, sizeof(head.word)) != 0 ||
	    head.time < 0 || head.files > left / sizeof(*m->files) ||
	    head.blocks > left / sizeof(*m->blocks) ||
	    head.files * sizeof(*m->files) + head.blocks * sizeof(*m->blocks) !=
		left)
		return false;
	*m = (struct manifest){ .time = head.time,
		.file_count = head.files,
		.block_count = head.blocks,
		.files = xcalloc(head.files, sizeof(*m->files)),
		.blocks = xcalloc(head.blocks, sizeof(*m->blocks)) };
	if (fread(m->files, sizeof(*m->files), head.files, in) == head.files &&
	    fread(m->blocks, sizeof(*m->blocks), head.blocks, in) ==
		head.blocks &&
	    fread(hash, sizeof(hash), 1, in) == 1 && manifest_check(m, hash))
		return true;
	manifest_release(m);
	return false;
}

bool
manifest_parse(struct manifest *m, const char *data, size_t len)
{
	FILE *in = fmemopen((void *)(uintptr_t)data, len, "r");
	bool good = in != NULL && manifest_load(m, in, len);

	if (in != NULL)
		(void)fclose(in);
	return good;
}

int
manifest_read(int folder, struct manifest *m, struct err *err)
{
	int fd = openat(folder, FILE_NAME, O_RDONLY | OPEN_FLAGS);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	char word[sizeof(WORD VERSION)] = "";
	struct stat st;
	bool good;
	bool other;

	*m = (struct manifest){ .time = 0 };
	if (in == NULL && errno == ENOENT)
		return 1;
	if (in == NULL)
		return err_system(err, "open the manifest");
	good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    manifest_load(m, in, (uint64_t)st.st_size);
	other = pread(fd, word, sizeof(word), 0) == sizeof(word) &&
	    strncmp(word, WORD, strlen(WORD)) == 0 &&
	    memcmp(word, WORD VERSION, sizeof(word)) != 0;
	(void)fclose(in);
	return good ?
	    0 :
	    err_set(err, ERR_INPUT,
		other ? "it is a backup of another version of Inline" :
			"the backup is damaged: its manifest is not whole");
}

/* ---- writing ---- */

void
manifest_print(const struct manifest *m, struct buf *out)
{
	struct manifest_parts p;

	manifest_part(m, &p);
	for (size_t i = 0; i < 4; i++)
		buf_add(out, p.of[i].iov_base, p.of[i].iov_len);
}

int
manifest_write(int folder, const struct manifest *m, struct err *err)
{
	struct manifest_parts p;
	auto_close int fd = openat(folder, DRAFT_NAME,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool good = fd >= 0;

	manifest_part(m, &p);
	for (size_t i = 0; good && i < 4; i++)
		good = fd_write_all(fd, p.of[i].iov_base, p.of[i].iov_len,
			   err) == 0;
	if (!good || fsync(fd) != 0 ||
	    renameat(folder, DRAFT_NAME, folder, FILE_NAME) != 0 ||
	    fsync(folder) != 0)
		return err_system(err, "write the manifest");
	return 0;
}
