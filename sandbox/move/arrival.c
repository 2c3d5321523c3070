/* SPDX-License-Identifier: MIT */
#include "move/arrival.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "move/parcel.h"
#include "store/moves.h"
#include "volume/owner.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* The room that a disk keeps, as the broker does (../broker/ledger.h): a share
 * of it, within these bounds. */
#define FLOOR_SHARE 50
#define FLOOR_LEAST ((uint64_t)256 << 20)
#define FLOOR_MOST ((uint64_t)2 << 30)

struct arrival {
	struct db *db;
	int base;
	int64_t user_id;
	const struct parcel *p;
	struct person_sandbox sandbox;
	int folder; /* the draft, which we have the lock of; -1 */
	char draft[sizeof(ARRIVAL_PREFIX) + SANDBOX_ID_LEN]; /* "": none */
	unsigned char data[MANIFEST_BLOCK];
};

/* ---- the draft ---- */

/* Remove the files of a draft, which has no folders. */
static void
empty(int folder)
{
	int fd = openat(folder, ".", FOLDER);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		(void)unlinkat(fd, e->d_name, 0);
}

static int
remove_folder(int base, const char *name, struct err *err)
{
	auto_close int fd = openat(base, name, FOLDER);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_system(err, "open %s", name);
	empty(fd);
	return unlinkat(base, name, AT_REMOVEDIR) == 0 ?
	    0 :
	    err_system(err, "remove %s", name);
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

/* Make an empty draft: whatever was left in there goes. */
static int
make_draft(struct arrival *a, struct err *err)
{
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
	empty(a->folder);
	return give(a, a->folder, err);
}

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

/* ---- what comes ---- */

/* Does the manifest name volumes of that sandbox alone? */
static bool
is_of_sandbox(const struct arrival *a)
{
	const struct manifest *m = &a->p->manifest;

	for (size_t i = 0; i < m->file_count; i++) {
		const char *name = m->files[i].name;

		if (strncmp(name, a->sandbox.id, SANDBOX_ID_LEN) != 0 ||
		    name[SANDBOX_ID_LEN] != '/' ||
		    name[SANDBOX_ID_LEN + 1] == '\0')
			return false;
	}
	return true;
}

static int
check_room(const struct arrival *a, struct err *err)
{
	uint64_t blocks = (uint64_t)a->p->head.blocks;
	struct statvfs st;
	uint64_t floor;

	if (fstatvfs(a->base, &st) != 0)
		return err_system(err, "ask for the disk's room");
	floor = st.f_blocks * st.f_frsize / FLOOR_SHARE;
	floor = floor < FLOOR_MOST ? floor : FLOOR_MOST;
	floor = floor > FLOOR_LEAST ? floor : FLOOR_LEAST;
	return st.f_bavail * st.f_frsize >= blocks + floor ?
	    0 :
	    err_set(err, ERR_LIMIT, "the disk has no room for a sandbox of %s",
		text_size(a->p->head.blocks).text);
}

/* 1: they are here. */
static int
check(struct arrival *a, struct err *err)
{
	const char *rows = buf_str(&a->p->rows);
	int here;

	if (person_look(a->db, rows, &a->sandbox, err) != 0)
		return -1;
	if (a->sandbox.active != (a->p->manifest.file_count > 0) ||
	    !is_of_sandbox(a))
		return err_set(err, ERR_INPUT,
		    "a sandbox without files, or files without a sandbox");
	here = person_is_here(a->db, a->user_id, &a->sandbox, err);
	if (here != 0)
		return here;
	return person_put(a->db, a->user_id, rows, false, err) != 0 ||
		check_room(a, err) != 0 ?
	    -1 :
	    0;
}

/* All blocks of a person who is here are checked, and none is written. */
static int
take_volume(struct arrival *a, const struct saved *file, bool here,
    struct err *err)
{
	const struct block *block = a->p->manifest.blocks + file->first;
	auto_close int fd = -1;

	if (!here) {
		fd = openat(a->folder, file->name + SANDBOX_ID_LEN + 1,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, file->size) != 0)
			return err_system(err, "make %s", file->name);
		if (give(a, fd, err) != 0)
			return -1;
	}
	for (size_t i = 0; i < file->count; i++, block++) {
		if (parcel_load(a->p, file, block, a->data, err) != 0)
			return -1;
		if (!here && block_store(fd, block, a->data, err) != 0)
			return err_wrap(err, "%s", file->name);
	}
	/* the broker gives its files to a user of this host's before it is
	 * mounted */
	if (!here && owner_disown(fd, err) != 0)
		return err_wrap(err, "%s", file->name);
	return here || fsync(fd) == 0 ? 0 :
					err_system(err, "keep %s", file->name);
}

static int
take(struct arrival *a, struct err *err)
{
	const struct manifest *m = &a->p->manifest;
	int here = check(a, err);

	if (here == 0 && m->file_count > 0 && make_draft(a, err) != 0)
		return -1;
	for (size_t i = 0; here >= 0 && i < m->file_count; i++)
		if (take_volume(a, &m->files[i], here == 1, err) != 0)
			return -1;
	/* another one may have brought them while this one came */
	if (here == 0)
		here = person_is_here(a->db, a->user_id, &a->sandbox, err);
	if (here != 0)
		return here;
	if (*a->draft != '\0' && name_draft(a, err) != 0)
		return -1;
	if (person_put(a->db, a->user_id, buf_str(&a->p->rows), true, err) == 0)
		return 0;
	if (err->code != ERR_CONFLICT)
		err->code = ERR_UNKNOWN;
	return -1;
}

int
arrival_take(struct db *db, int base, int64_t user_id, const struct parcel *p,
    struct err *err)
{
	struct arrival a = {
		.db = db, .base = base, .user_id = user_id, .p = p, .folder = -1
	};
	int result = take(&a, err);
	struct err why;

	if (result < 0 && err->code == ERR_SYSTEM &&
	    (errno == ENOSPC || errno == EDQUOT))
		err->code = ERR_LIMIT;
	if (*a.draft != '\0' && remove_folder(base, a.draft, &why) != 0)
		log_warn("a draft stays: %s", why.text);
	cleanup_close(&a.folder);
	return result;
}
