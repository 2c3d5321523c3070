/* SPDX-License-Identifier: MIT */
#include "arrival.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <sodium.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/text.h"
#include "../store/person.h"
#include "../volume/owner.h"
#include "parcel.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* The room that the disk keeps, as the broker does (../broker/ledger.h). */
#define FLOOR_SHARE 50
#define FLOOR_LEAST ((uint64_t)256 << 20)
#define FLOOR_MOST ((uint64_t)2 << 30)

/* What comes next. */
enum part { PART_HEAD, PART_ROWS, PART_MANIFEST, PART_BLOCK, PART_HASH, OVER };

struct arrival {
	crypto_generichash_state all; /* of the parts before */
	struct db *db;
	const char *node;
	int64_t user_id;
	struct parcel_head head;
	struct buf rows;
	struct person_sandbox sandbox;
	struct manifest m;
	struct buf bytes; /* of the part that comes, */
	size_t want;	  /* so many */
	enum part part;
	int base;
	size_t file;  /* whose blocks come, */
	size_t block; /* and the next one of all */
	int fd;	      /* of that file; -1 */
	int folder;   /* the draft, which we have the lock of; -1 */
	char draft[sizeof(ARRIVAL_PREFIX) + SANDBOX_ID_LEN]; /* "": none */
	bool here; /* they are: nothing is written */
};

struct arrival *
arrival_new(struct db *db, int base, const char *node, int64_t user_id)
{
	struct arrival *a = xcalloc(1, sizeof(*a));

	a->db = db;
	a->base = base;
	a->node = node;
	a->user_id = user_id;
	a->want = PARCEL_HEAD;
	a->folder = a->fd = -1;
	buf_init(&a->bytes, PARCEL_MANIFEST_MAX);
	buf_init(&a->rows, PERSON_ROWS_MAX);
	(void)crypto_generichash_init(&a->all, NULL, 0, PARCEL_HASH);
	return a;
}

/* ---- the draft ---- */

static int
remove_folder(int base, const char *name, struct err *err)
{
	int fd = openat(base, name, FOLDER);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_system(err, "open %s", name);
	while (dir != NULL && (e = readdir(dir)) != NULL)
		(void)unlinkat(fd, e->d_name, 0);
	if (unlinkat(base, name, AT_REMOVEDIR) != 0)
		return err_system(err, "remove %s", name);
	return 0;
}

/* The draft's descriptor, with its lock; -1: it is not there, or somebody has
 * it. */
static int
lock_draft(int base, const char *name)
{
	auto_close int fd = openat(base, name, FOLDER);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? steal_fd(&fd) :
							      -1;
}

void
arrival_sweep(int base)
{
	int fd = openat(base, ".", FOLDER);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct err err;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		auto_close int draft = -1;

		if (strncmp(e->d_name, ARRIVAL_PREFIX,
			strlen(ARRIVAL_PREFIX)) != 0)
			continue;
		draft = lock_draft(base, e->d_name);
		if (draft >= 0 && remove_folder(base, e->d_name, &err) != 0)
			log_warn("a draft stays: %s", err.text);
	}
}

/* New files are the base folder's owner's, which is the broker's. */
static int
give(const struct arrival *a, int fd, struct err *err)
{
	struct stat st;
	struct stat now;

	if (fstat(a->base, &st) != 0 || fstat(fd, &now) != 0 ||
	    ((now.st_uid != st.st_uid || now.st_gid != st.st_gid) &&
		fchown(fd, st.st_uid, st.st_gid) != 0))
		return err_system(err, "change the owner of a volume");
	return 0;
}

/* An empty one: what was left in there goes. */
static int
make_draft(struct arrival *a, struct err *err)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *e;

	(void)snprintf(a->draft, sizeof(a->draft), ARRIVAL_PREFIX "%s",
	    a->sandbox.id);
	if (mkdirat(a->base, a->draft, 0700) != 0 && errno != EEXIST)
		return err_system(err, "make %s", a->draft);
	a->folder = lock_draft(a->base, a->draft);
	if (a->folder < 0) {
		*a->draft = '\0';
		return err_set(err, ERR_CONFLICT,
		    "the same person is just arriving otherwise");
	}
	dir = fdopendir(openat(a->folder, ".", FOLDER));
	while (dir != NULL && (e = readdir(dir)) != NULL)
		(void)unlinkat(a->folder, e->d_name, 0);
	return give(a, a->folder, err);
}

static int
check_room(const struct arrival *a, struct err *err)
{
	struct statvfs st;
	uint64_t floor;

	if (fstatvfs(a->base, &st) != 0)
		return err_system(err, "ask for the disk's room");
	floor = st.f_blocks * st.f_frsize / FLOOR_SHARE;
	if (floor > FLOOR_MOST)
		floor = FLOOR_MOST;
	if (floor < FLOOR_LEAST)
		floor = FLOOR_LEAST;
	if (st.f_bavail * st.f_frsize < (uint64_t)a->head.blocks + floor)
		return err_set(err, ERR_LIMIT,
		    "the disk has no room for a sandbox of %s",
		    text_size(a->head.blocks).text);
	return 0;
}

/* ---- the parts ---- */

static int
take_head(struct arrival *a, struct err *err)
{
	if (parcel_head_read(&a->head, buf_str(&a->bytes), err) != 0)
		return -1;
	if (strcmp(a->head.node, a->node) != 0)
		return err_set(err, ERR_NOT_FOUND,
		    "this host is %s, not %s: the table of nodes has a wrong "
		    "address",
		    a->node, a->head.node);
	return 0;
}

static int
take_rows(struct arrival *a, struct err *err)
{
	int here;

	buf_add(&a->rows, buf_str(&a->bytes), a->bytes.len);
	if (strlen(buf_str(&a->rows)) != a->rows.len)
		return err_set(err, ERR_INPUT, "a NUL in the rows");
	if (person_look(a->db, buf_str(&a->rows), &a->sandbox, err) != 0)
		return -1;
	if (a->sandbox.active != (a->head.manifest > 0) ||
	    (a->head.manifest == 0 && a->head.blocks > 0))
		return err_set(err, ERR_INPUT,
		    "a sandbox without files, or files without a sandbox");
	here = person_is_here(a->db, a->user_id, &a->sandbox, err);
	a->here = here == 1;
	if (here == 0)
		here = person_put(a->db, a->user_id, buf_str(&a->rows), false,
		    err);
	return here < 0 ? -1 : 0;
}

/* Does the manifest name volumes of that sandbox alone? */
static bool
is_of_sandbox(const struct arrival *a)
{
	for (size_t i = 0; i < a->m.file_count; i++) {
		const char *name = a->m.files[i].name;

		if (strncmp(name, a->sandbox.id, SANDBOX_ID_LEN) != 0 ||
		    name[SANDBOX_ID_LEN] != '/' ||
		    name[SANDBOX_ID_LEN + 1] == '\0')
			return false;
	}
	return a->m.file_count > 0;
}

static int
take_manifest(struct arrival *a, struct err *err)
{
	FILE *in = fmemopen(a->bytes.data, a->bytes.len, "r");
	bool good = in != NULL && manifest_parse(&a->m, in);
	int64_t blocks = 0;

	if (in != NULL)
		(void)fclose(in);
	for (size_t i = 0; good && i < a->m.block_count; i++)
		blocks += a->m.blocks[i].len;
	if (!good || !is_of_sandbox(a) || blocks != a->head.blocks)
		return err_set(err, ERR_INPUT, "the manifest is wrong");
	if (a->here)
		return 0;
	return check_room(a, err) != 0 ? -1 : make_draft(a, err);
}

/* A volume is whole: the broker gives its files to a user of this host's before
 * it is mounted. */
static int
close_volume(struct arrival *a, struct err *err)
{
	const char *name = a->m.files[a->file].name;

	if (owner_disown(a->fd, err) != 0)
		return err_wrap(err, "%s", name);
	if (fsync(a->fd) != 0)
		return err_system(err, "keep %s", name);
	cleanup_close(&a->fd);
	a->file++;
	return 0;
}

static int
open_file(struct arrival *a, struct err *err)
{
	const struct saved *file = &a->m.files[a->file];

	a->fd = openat(a->folder, file->name + SANDBOX_ID_LEN + 1,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (a->fd < 0 || ftruncate(a->fd, file->size) != 0)
		return err_system(err, "make %s", file->name);
	return give(a, a->fd, err);
}

/* Up to the file that the next block is of; one that has no block is a hole. */
static int
turn_to_file(struct arrival *a, struct err *err)
{
	while (!a->here && a->file < a->m.file_count) {
		const struct saved *file = &a->m.files[a->file];

		if (a->fd < 0 && open_file(a, err) != 0)
			return -1;
		if (a->block < file->first + file->count)
			return 0;
		if (close_volume(a, err) != 0)
			return -1;
	}
	return 0;
}

static int
take_block(struct arrival *a, struct err *err)
{
	const struct block *block = &a->m.blocks[a->block];
	struct block found = *block;

	block_hash(&found, (const unsigned char *)a->bytes.data);
	if (memcmp(found.hash, block->hash, sizeof(found.hash)) != 0)
		return err_set(err, ERR_INPUT, "a block is not what was sent");
	if (!a->here &&
	    pwrite(a->fd, a->bytes.data, block->len, block->offset) !=
		(ssize_t)block->len)
		return err_system(err, "write a block");
	a->block++;
	return 0;
}

static int
take_hash(struct arrival *a, struct err *err)
{
	unsigned char hash[PARCEL_HASH];

	(void)crypto_generichash_final(&a->all, hash, sizeof(hash));
	return memcmp(hash, a->bytes.data, sizeof(hash)) == 0 ?
	    0 :
	    err_set(err, ERR_INPUT, "it is not what was sent");
}

static int
take_part(struct arrival *a, struct err *err)
{
	static int (*const takers[])(struct arrival * a, struct err * err) = {
		[PART_HEAD] = take_head,
		[PART_ROWS] = take_rows,
		[PART_MANIFEST] = take_manifest,
		[PART_BLOCK] = take_block,
		[PART_HASH] = take_hash,
	};
	if (a->part != PART_HASH)
		(void)crypto_generichash_update(&a->all,
		    (const unsigned char *)buf_str(&a->bytes), a->bytes.len);
	return takers[a->part](a, err);
}

/* Which part comes next, and how long it is. */
static void
next_part(struct arrival *a)
{
	if (a->part != PART_BLOCK || a->block == a->m.block_count)
		a->part++;
	if (a->part == PART_MANIFEST && a->head.manifest == 0)
		a->part = PART_HASH;
	if (a->part == PART_BLOCK && a->m.block_count == 0)
		a->part = PART_HASH;
	if (a->part == PART_ROWS)
		a->want = a->head.rows;
	else if (a->part == PART_MANIFEST)
		a->want = a->head.manifest;
	else if (a->part == PART_BLOCK)
		a->want = a->m.blocks[a->block].len;
	else
		a->want = PARCEL_HASH;
}

/* A disk that is full says so in errno. */
static int
fail(struct err *err)
{
	if (err->code == ERR_SYSTEM && (errno == ENOSPC || errno == EDQUOT))
		err->code = ERR_LIMIT;
	return -1;
}

int
arrival_take(struct arrival *a, const void *data, size_t len, struct err *err)
{
	const char *at = data;

	for (;;) {
		size_t some = a->want - a->bytes.len;

		if (some > len)
			some = len;
		if (a->part == OVER)
			return len == 0 ?
			    0 :
			    err_set(err, ERR_INPUT, "more than was announced");
		buf_add(&a->bytes, at, some);
		at += some;
		len -= some;
		if (a->bytes.len < a->want)
			return 0;
		if (take_part(a, err) != 0)
			return fail(err);
		next_part(a);
		buf_reset(&a->bytes);
		if (a->part > PART_MANIFEST && turn_to_file(a, err) != 0)
			return fail(err);
	}
}

/* ---- the end ---- */

/* A folder of this name is of an arrival that was killed before the rows. */
static int
name_draft(struct arrival *a, struct err *err)
{
	if (fsync(a->folder) != 0)
		return err_system(err, "keep %s", a->draft);
	if (remove_folder(a->base, a->sandbox.id, err) != 0)
		return -1;
	if (renameat2(a->base, a->draft, a->base, a->sandbox.id,
		RENAME_NOREPLACE) != 0)
		return err_system(err, "name %s", a->sandbox.id);
	*a->draft = '\0';
	return fsync(a->base) == 0 ? 0 :
				     err_system(err, "keep %s", a->sandbox.id);
}

int
arrival_end(struct arrival *a, struct err *err)
{
	int here;

	if (a->part != OVER)
		return err_set(err, ERR_INPUT, "less than was announced");
	if (a->here)
		return 1;
	/* another one may have brought them while this one came */
	here = person_is_here(a->db, a->user_id, &a->sandbox, err);
	if (here != 0)
		return here;
	if (*a->draft != '\0' && name_draft(a, err) != 0)
		return fail(err);
	if (person_put(a->db, a->user_id, buf_str(&a->rows), true, err) == 0)
		return 0;
	if (err->code != ERR_CONFLICT)
		err->code = ERR_UNKNOWN;
	return -1;
}

void
arrival_free(struct arrival *a)
{
	struct err err;

	cleanup_close(&a->fd);
	if (*a->draft != '\0' && remove_folder(a->base, a->draft, &err) != 0)
		log_warn("a draft stays: %s", err.text);
	cleanup_close(&a->folder);
	manifest_release(&a->m);
	buf_release(&a->bytes);
	buf_release(&a->rows);
	free(a);
}
