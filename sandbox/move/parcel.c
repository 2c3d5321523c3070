/* SPDX-License-Identifier: MIT */
/*
 * The form of a parcel, and how one is packed and sent.  Volumes are read
 * twice, for their hashes and then for the stream, under the lock that a loop
 * device would have: nothing can mount them meanwhile.
 */
#include "parcel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/text.h"
#include "../protocol/lease.h"
#include "../store/person.h"
#include "volume_lock.h"

#define WORD "inline-person"
#define WORDS 6
#define VERSION "1"
#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- the head ---- */

void
parcel_head_print(const struct parcel_head *head, char text[PARCEL_HEAD])
{
	char line[PARCEL_HEAD];
	int len = snprintf(line, sizeof(line),
	    WORD " " VERSION " %s %zu %zu %" PRId64, head->node, head->rows,
	    head->manifest, head->blocks);

	memset(text, '\n', PARCEL_HEAD);
	memcpy(text, line, (size_t)len);
}

int
parcel_head_read(struct parcel_head *head, const char text[PARCEL_HEAD],
    struct err *err)
{
	auto_free char *copy = xstrndup(text, PARCEL_HEAD);
	char *words[WORDS] = { NULL };
	char *rest = copy;
	int64_t rows;
	int64_t manifest;

	copy[strcspn(copy, "\n")] = '\0';
	for (size_t i = 0; i < WORDS; i++)
		words[i] = strsep(&rest, " ");
	if (rest != NULL || words[WORDS - 1] == NULL ||
	    strcmp(words[0], WORD) != 0 || strcmp(words[1], VERSION) != 0 ||
	    strlen(words[2]) > PARCEL_NODE_MAX ||
	    !text_parse_int(words[3], 0, PERSON_ROWS_MAX, &rows) ||
	    !text_parse_int(words[4], 0, PARCEL_MANIFEST_MAX, &manifest) ||
	    !text_parse_int(words[5], 0, PARCEL_BLOCKS_MAX, &head->blocks))
		return err_set(err, ERR_INPUT,
		    "no person as this version sends them");
	(void)snprintf(head->node, sizeof(head->node), "%s", words[2]);
	head->rows = (size_t)rows;
	head->manifest = (size_t)manifest;
	return 0;
}

int64_t
parcel_size(const struct parcel_head *head)
{
	return PARCEL_HEAD + (int64_t)head->rows + (int64_t)head->manifest +
	    head->blocks + PARCEL_HASH;
}

/* ---- packing ---- */

void
parcel_init(struct parcel *p)
{
	*p = (struct parcel){ .rows = BUF_INIT(PERSON_ROWS_MAX),
		.text = BUF_INIT(PARCEL_MANIFEST_MAX),
		.backup = -1 };
}

void
parcel_release(struct parcel *p)
{
	for (size_t i = 0; p->volumes != NULL && i < p->manifest.file_count;
	     i++)
		cleanup_close(&p->volumes[i]);
	free(p->volumes);
	manifest_release(&p->manifest);
	buf_release(&p->rows);
	buf_release(&p->text);
	parcel_init(p);
}

/* A volume that is being read. */
struct reading {
	struct manifest *m;
	int fd;
	int64_t size;
	unsigned char data[MANIFEST_BLOCK];
};

static int
read_volume(struct reading *r, struct block *block, struct err *err)
{
	int64_t left = r->size - block->offset;
	ssize_t got;

	block->len = left < MANIFEST_BLOCK ? (uint32_t)left : MANIFEST_BLOCK;
	got = pread(r->fd, r->data, block->len, block->offset);
	if (got == (ssize_t)block->len)
		return 0;
	return got < 0 ? err_system(err, "read a volume") :
			 err_set(err, ERR_CONFLICT, "a volume got shorter");
}

static int
add_block(void *arg, int64_t offset, struct err *err)
{
	struct reading *r = arg;
	struct block block = { .offset = offset };

	if (read_volume(r, &block, err) != 0)
		return -1;
	if (block_is_zero(r->data, block.len))
		return 0;
	block_hash(&block, r->data);
	manifest_add_block(r->m, &block);
	return 0;
}

/* Open and lock it; its blocks come later, so that what is removed meanwhile
 * can still be read. */
static int
open_volume(struct parcel *p, int dir, const char *id, const char *volume,
    struct err *err)
{
	auto_free char *name = xprintf("%s/%s", id, volume);
	int fd = openat(dir, volume,
	    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	size_t i = p->manifest.file_count;
	struct stat st;

	if (fd < 0)
		return err_system(err, "%s", name);
	(void)manifest_add(&p->manifest, name);
	p->volumes = xrealloc(p->volumes, (i + 1) * sizeof(*p->volumes));
	p->volumes[i] = fd;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    !manifest_is_name(name))
		return err_set(err, ERR_CONFLICT, "%s is no volume", name);
	return 0;
}

static bool
is_volume(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && strcmp(name + len - 5, ".ext4") == 0;
}

static int
open_volumes(struct parcel *p, const char *base, const char *id,
    struct err *err)
{
	auto_free char *path = xprintf("%s/%s", base, id);
	int fd = open(path, FOLDER);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (dir == NULL)
		return err_system(err, "%s", path);
	while ((e = readdir(dir)) != NULL)
		if (is_volume(e->d_name) &&
		    open_volume(p, dirfd(dir), id, e->d_name, err) != 0)
			return -1;
	return p->manifest.file_count > 0 ?
	    0 :
	    err_set(err, ERR_CONFLICT, "%s has no volume", path);
}

static int
lock_volumes(const struct parcel *p, const struct config *config,
    const char *id, int64_t wait_ms, struct err *err)
{
	auto_free char *socket = config_state_path(config, SOCKET_BROKER_CTL);
	int64_t until_ms = clock_monotonic_ms() + wait_ms;

	for (size_t i = 0; i < p->manifest.file_count; i++)
		if (!volume_lock(socket, p->volumes[i], id,
			until_ms - clock_monotonic_ms()))
			return err_set(err, ERR_BUSY, "%s is in use",
			    p->manifest.files[i].name);
	return 0;
}

static int
hash_volumes(struct parcel *p, struct err *err)
{
	struct reading *r = xcalloc(1, sizeof(*r));
	struct manifest whole = { .time = clock_wall_ms() / 1000 };
	int result = 0;

	r->m = &whole;
	for (size_t i = 0; result == 0 && i < p->manifest.file_count; i++) {
		struct saved *file = manifest_add(&whole,
		    p->manifest.files[i].name);
		struct stat st;

		r->fd = p->volumes[i];
		if (fstat(r->fd, &st) != 0)
			result = err_system(err, "%s", file->name);
		file->size = r->size = st.st_size;
		if (result == 0)
			result = blocks_walk(r->fd, r->size, add_block, r, err);
	}
	manifest_release(&p->manifest);
	p->manifest = whole;
	free(r);
	return result;
}

/* The manifest's text, and the head. */
static int
close_parcel(struct parcel *p, const char *node, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	bool good = p->manifest.file_count == 0 ||
	    manifest_print(&p->manifest, out);

	(void)fclose(out);
	buf_add(&p->text, text, len);
	free(text);
	if (!good || p->text.overflow)
		return err_set(err, ERR_LIMIT, "a sandbox as large as that");
	p->head.rows = p->rows.len;
	p->head.manifest = p->text.len;
	for (size_t i = 0; i < p->manifest.block_count; i++)
		p->head.blocks += p->manifest.blocks[i].len;
	(void)snprintf(p->head.node, sizeof(p->head.node), "%s", node);
	return 0;
}

int
parcel_pack(struct parcel *p, const struct config *config, struct db *db,
    int64_t user_id, const char *node, int64_t wait_ms, struct err *err)
{
	struct person_sandbox sandbox;

	if (person_rows(db, user_id, &p->rows, err) != 0 ||
	    person_look(db, buf_str(&p->rows), &sandbox, err) != 0)
		return -1;
	if (sandbox.active &&
	    (open_volumes(p, config->base_dir, sandbox.id, err) != 0 ||
		lock_volumes(p, config, sandbox.id, wait_ms, err) != 0 ||
		hash_volumes(p, err) != 0))
		return -1;
	return close_parcel(p, node, err);
}

int
parcel_pack_saved(struct parcel *p, int backup, const struct manifest *m,
    struct db *db, int64_t user_id, const char *node, struct err *err)
{
	struct person_sandbox sandbox;

	p->backup = backup;
	if (person_rows(db, user_id, &p->rows, err) != 0 ||
	    person_look(db, buf_str(&p->rows), &sandbox, err) != 0)
		return -1;
	if (p->rows.len == 0)
		return err_set(err, ERR_NOT_FOUND,
		    "user %" PRId64 " is not in this backup", user_id);
	p->manifest.time = m->time;
	for (size_t i = 0; sandbox.active && i < m->file_count; i++) {
		const struct saved *file = &m->files[i];

		if (strncmp(file->name, sandbox.id, SANDBOX_ID_LEN) != 0 ||
		    !is_volume(file->name))
			continue;
		manifest_add(&p->manifest, file->name)->size = file->size;
		for (size_t k = 0; k < file->count; k++)
			manifest_add_block(&p->manifest,
			    &m->blocks[file->first + k]);
	}
	if (sandbox.active && p->manifest.file_count == 0)
		return err_set(err, ERR_NOT_FOUND,
		    "sandbox %s was in use when the backup was made, and its "
		    "files are not in there",
		    sandbox.id);
	return close_parcel(p, node, err);
}

/* ---- sending ---- */

struct sending {
	parcel_fn fn;
	void *arg;
	crypto_generichash_state all;
};

static int
put(struct sending *s, const void *data, size_t len, struct err *err)
{
	(void)crypto_generichash_update(&s->all, data, len);
	return len > 0 ? s->fn(s->arg, data, len, err) : 0;
}

/* A block as the manifest has it, out of a volume or the backup. */
static int
load_block(const struct parcel *p, const struct saved *file,
    const struct block *block, struct reading *r, struct err *err)
{
	struct block found = *block;

	if (p->volumes == NULL)
		return block_read(p->backup, block, r->data, err);
	r->fd = p->volumes[file - p->manifest.files];
	r->size = file->size;
	if (read_volume(r, &found, err) != 0)
		return -1;
	block_hash(&found, r->data);
	return memcmp(found.hash, block->hash, sizeof(found.hash)) == 0 ?
	    0 :
	    err_set(err, ERR_CONFLICT, "%s has changed", file->name);
}

static int
send_blocks(const struct parcel *p, struct sending *s, struct err *err)
{
	auto_free struct reading *r = xcalloc(1, sizeof(*r));

	for (size_t i = 0; i < p->manifest.file_count; i++) {
		const struct saved *file = &p->manifest.files[i];

		for (size_t k = 0; k < file->count; k++) {
			const struct block
			    *block = &p->manifest.blocks[file->first + k];

			if (load_block(p, file, block, r, err) != 0 ||
			    put(s, r->data, block->len, err) != 0)
				return -1;
		}
	}
	return 0;
}

int
parcel_send(const struct parcel *p, parcel_fn fn, void *arg, struct err *err)
{
	struct sending s = { .fn = fn, .arg = arg };
	unsigned char hash[PARCEL_HASH];
	char head[PARCEL_HEAD];

	(void)crypto_generichash_init(&s.all, NULL, 0, PARCEL_HASH);
	parcel_head_print(&p->head, head);
	if (put(&s, head, sizeof(head), err) != 0 ||
	    put(&s, buf_str(&p->rows), p->rows.len, err) != 0 ||
	    put(&s, buf_str(&p->text), p->text.len, err) != 0 ||
	    send_blocks(p, &s, err) != 0)
		return -1;
	(void)crypto_generichash_final(&s.all, hash, sizeof(hash));
	return fn(arg, hash, sizeof(hash), err);
}
