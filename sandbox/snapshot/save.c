/* SPDX-License-Identifier: MIT */
/*
 * A volume is read in rounds.  Each takes the volume's lock if it is free,
 * reads a few MiB and lets go of it; what of it has changed is found and
 * written without the lock.  When somebody has mounted the volume between two
 * rounds, its times have changed, and all of it begins anew when it is free.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/text.h"
#include "object.h"
#include "task.h"

/* Of data, in one round: who wants the volume waits for so long at most. */
#define ROUND_BLOCKS (((size_t)8 << 20) / MANIFEST_BLOCK)
/* What was written so short a time ago may be written again within the same
 * tick of the kernel's clock. */
#define RECENT_NS INT64_C(500000000)

/* A block that was read with the lock, and is looked at without it. */
struct read {
	struct block block;
	unsigned char data[MANIFEST_BLOCK];
};

struct pass {
	struct saving *s;
	const char *id;
	struct manifest last;
	struct manifest next;
	struct block *known; /* of the last one, by their hash */
	/* the volume */
	int fd;
	struct stat first; /* as it was in the first round */
	int64_t go_on;	   /* where the next round begins; -1: there is none */
	struct read read[ROUND_BLOCKS];
	size_t read_count; /* in this round */
};

bool
task_is_id(const char *id)
{
	return strlen(id) == TASK_ID_LEN &&
	    strspn(id, "0123456789abcdef") == TASK_ID_LEN &&
	    strspn(id, "0") != TASK_ID_LEN;
}

/* ---- one volume ---- */

static int64_t
nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	    nanoseconds(a->st_mtim) == nanoseconds(b->st_mtim) &&
	    nanoseconds(a->st_ctim) == nanoseconds(b->st_ctim);
}

/* Read one; 1: the round is over before it. */
static int
read_block(void *arg, int64_t offset, struct err *err)
{
	struct pass *p = arg;
	struct read *read = &p->read[p->read_count];
	int64_t rest = p->first.st_size - offset;
	ssize_t got;

	if (p->read_count == ROUND_BLOCKS) {
		p->go_on = offset;
		return 1;
	}
	read->block = (struct block){ .offset = offset,
		.len = rest < MANIFEST_BLOCK ? (uint32_t)rest :
					       MANIFEST_BLOCK };
	got = pread(p->fd, read->data, read->block.len, offset);
	if (got != (ssize_t)read->block.len)
		return got < 0 ? err_system(err, "read") :
				 err_set(err, ERR_SYSTEM, "it got shorter");
	p->read_count++;
	return 0;
}

/* Without the lock: one that the last snapshot has not is written. */
static int
take_block(struct pass *p, struct read *read, struct err *err)
{
	auto_free void *packed = NULL;
	char name[STORE_NAME_MAX];
	size_t len;

	if (block_is_zero(read->data, read->block.len))
		return 0;
	block_hash(&read->block, read->data);
	manifest_add_block(&p->next, &read->block);
	if (blocks_have(p->known, p->last.block_count, &read->block))
		return 0;
	packed = object_pack(read->data, read->block.len, &len);
	object_block_name(p->id, &read->block, name);
	p->s->bytes += (int64_t)len;
	return p->s->store->put(p->s->store, name, packed, len, err);
}

/* With the lock, from that offset on. */
static int
read_round(struct pass *p, int64_t from, const char *name, struct err *err)
{
	struct stat now;
	int rc;

	p->read_count = 0;
	if (flock(p->fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ?
		    err_set(err, ERR_BUSY, "%s is in use", name) :
		    err_system(err, "lock %s", name);
	if (fstat(p->fd, &now) != 0 || now.st_nlink == 0)
		return err_set(err, ERR_NOT_FOUND, "%s is gone", name);
	if (!is_same(&now, &p->first))
		return err_set(err, ERR_BUSY, "%s was in use", name);
	p->go_on = -1;
	rc = blocks_walk(p->fd, from, now.st_size, read_block, p, err);
	/* nobody else reads it through the page cache: mounts are direct */
	(void)posix_fadvise(p->fd, from, 0, POSIX_FADV_DONTNEED);
	(void)flock(p->fd, LOCK_UN);
	return rc < 0 ? -1 : 0;
}

/* It is as it was in the last snapshot. */
static void
carry(struct pass *p, const struct saved *file)
{
	struct saved *copy = manifest_add(&p->next, file->name);
	size_t first = copy->first;

	*copy = *file;
	copy->first = first;
	copy->count = 0;
	for (size_t i = 0; i < file->count; i++)
		manifest_add_block(&p->next, &p->last.blocks[file->first + i]);
}

static void
add_file(struct pass *p, const char *name)
{
	struct saved *file = manifest_add(&p->next, name);
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	file->mode = p->first.st_mode & 0777;
	file->uid = p->first.st_uid;
	file->gid = p->first.st_gid;
	file->size = p->first.st_size;
	file->mtime_ns = nanoseconds(p->first.st_mtim);
	if (file->mtime_ns < 0 || nanoseconds(now) - file->mtime_ns < RECENT_NS)
		file->mtime_ns = 0;
}

static int
save_volume(struct pass *p, int folder, const char *volume, struct err *err)
{
	auto_free char *name = xprintf("%s/%s", p->id, volume);
	const struct saved *last = manifest_find(&p->last, name);
	auto_close int fd = openat(folder, volume,
	    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	int64_t from = 0;

	p->fd = fd;
	if (fd < 0 || fstat(fd, &p->first) != 0)
		return err_system(err, "%s", name);
	if (!S_ISREG(p->first.st_mode) || !manifest_is_name(name))
		return 0;
	if (last != NULL && last->mtime_ns != 0 &&
	    last->size == p->first.st_size &&
	    last->mtime_ns == nanoseconds(p->first.st_mtim)) {
		carry(p, last);
		return 0;
	}
	p->s->saved = true;
	add_file(p, name);
	do {
		if (read_round(p, from, name, err) != 0)
			return -1;
		for (size_t i = 0; i < p->read_count; i++)
			if (take_block(p, &p->read[i], err) != 0)
				return -1;
		from = p->go_on;
	} while (from >= 0);
	return 0;
}

/* ---- all of a sandbox ---- */

static bool
is_volume(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && strcmp(name + len - 5, ".ext4") == 0;
}

static int
save_volumes(struct pass *p, struct err *err)
{
	int fd = openat(p->s->base, p->id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (dir == NULL)
		return errno == ENOENT ?
		    err_set(err, ERR_NOT_FOUND, "%s is gone", p->id) :
		    err_system(err, "%s", p->id);
	while ((e = readdir(dir)) != NULL) {
		if (!is_volume(e->d_name))
			continue;
		if (p->next.file_count == OBJECT_VOLUMES_MAX)
			return err_set(err, ERR_LIMIT, "%s: too many volumes",
			    p->id);
		if (save_volume(p, fd, e->d_name, err) != 0)
			return -1;
	}
	/* one was removed */
	p->s->saved = p->s->saved || p->next.file_count != p->last.file_count;
	return 0;
}

/* A damaged one is begun anew. */
static int
read_last(struct pass *p, struct err *err)
{
	if (object_get_manifest(p->s->store, p->id, &p->last, err) < 0) {
		if (err->code != ERR_INPUT)
			return -1;
		log_warn("%s; it is made anew sandbox=%s", err->text, p->id);
		p->s->sweep = true;
	}
	p->known = blocks_sorted(&p->last);
	return 0;
}

/* Blocks that the last one needed and this one does not. */
static int
remove_old(struct pass *p, struct err *err)
{
	auto_free struct block *needed = blocks_sorted(&p->next);
	struct store *store = p->s->store;
	char name[STORE_NAME_MAX];

	for (size_t i = 0; i < p->last.block_count; i++) {
		const struct block *old = &p->known[i];

		if (blocks_have(needed, p->next.block_count, old))
			continue;
		object_block_name(p->id, old, name);
		if (store->remove(store, name, err) != 0)
			return -1;
	}
	return store->wait(store, err);
}

/* That of which a restored sandbox was made is its old host's, which may never
 * come back to remove it.  It is kept until this one was in use: only then does
 * the database name it no more.  False: look again. */
static bool
forget_origin(const struct pass *p)
{
	auto_close int folder = openat(p->s->base, p->id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char from[TASK_ID_SIZE];
	struct stat mark;
	struct stat volume;
	int64_t seconds;
	struct err err;

	if (folder < 0 || !task_read_mark(folder, from, &seconds) ||
	    strcmp(from, p->id) == 0)
		return true;
	if (fstatat(folder, TASK_MARK, &mark, AT_SYMLINK_NOFOLLOW) != 0 ||
	    fstatat(folder, "workspace.ext4", &volume, AT_SYMLINK_NOFOLLOW) !=
		0 ||
	    nanoseconds(volume.st_mtim) <= nanoseconds(mark.st_mtim))
		return false;
	if (forget_sandbox(p->s->store, from, &err) == 0)
		return true;
	log_warn("the snapshot of before stays: %s sandbox=%s from=%s",
	    err.text, p->id, from);
	return false;
}

/* The blocks are there to stay before the manifest that names them is written,
 * and it is before those are removed that it does not name. */
static int
publish(struct pass *p, struct err *err)
{
	struct store *store = p->s->store;
	bool swept = p->s->sweep;
	struct err left;

	p->next.time = clock_wall_ms() / 1000;
	if (store->wait(store, err) != 0)
		return -1;
	if (faccessat(p->s->base, p->id, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		return err_set(err, ERR_NOT_FOUND, "%s is gone", p->id);
	if (object_put_manifest(store, p->id, &p->next, err) != 0 ||
	    store->wait(store, err) != 0)
		return -1;
	p->s->sweep = (swept ? sweep_sandbox(store, p->id, &p->next, &left) :
			       remove_old(p, &left)) != 0;
	if (p->s->sweep)
		log_warn("blocks stay until it is saved again: %s sandbox=%s",
		    left.text, p->id);
	if (swept && !forget_origin(p))
		p->s->sweep = true;
	return 0;
}

int
save_sandbox(struct saving *s, const char *id, struct err *err)
{
	struct pass *p = xcalloc(1, sizeof(*p));
	int rc;

	p->s = s;
	p->id = id;
	s->saved = false;
	rc = read_last(p, err);
	if (rc == 0)
		rc = save_volumes(p, err);
	if (rc == 0 && s->saved)
		rc = publish(p, err);
	free(p->known);
	manifest_release(&p->last);
	manifest_release(&p->next);
	free(p);
	return rc;
}
