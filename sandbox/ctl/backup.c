/* SPDX-License-Identifier: MIT */
/*
 * `ilctl backup`: database and sandboxes into a folder (manifest.h), while the
 * service runs.  A volume is read under the lock that its loop device would
 * have, so it is never copied while it is mounted; one that has not changed is
 * not read at all.  Nothing of the last backup is touched before the new one is
 * whole and on the disk.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/table.h"
#include "move/parcel.h"
#include "protocol/lease.h"
#include "store/db.h"
#include "volume/manifest.h"

/* A file that was written so recently may be written again within the same tick
 * of the kernel's clock, and its time would not change. */
#define RECENT_NS INT64_C(2000000000)
#define DATABASE_DRAFT "database.new"
#define BLOCK_DRAFT "blocks/new"

struct backup {
	const struct config *config;
	const char *path;
	int folder;
	char *socket;
	int64_t wait_ms;
	struct manifest last;
	struct manifest next;
	struct block *known; /* of the last one, by their hash */
	int64_t written;     /* bytes */
	int64_t had;
	size_t not_fresh;
	const char *sandbox; /* the owner of the volumes that are being saved */
};

/* ---- blocks ---- */

static bool
is_there(const struct backup *b, const struct block *block, const char *path)
{
	struct stat st;

	return fstatat(b->folder, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) && st.st_size == block->len;
}

static int
write_block(struct backup *b, const struct block *block,
    const unsigned char *data, const char *path, struct err *err)
{
	auto_free char *folder = xstrdup(path);
	auto_close int fd = openat(b->folder, BLOCK_DRAFT,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	*strrchr(folder, '/') = '\0';
	if (fd < 0 || fd_write_all(fd, data, (size_t)block->len, err) != 0 ||
	    (mkdirat(b->folder, folder, 0700) != 0 && errno != EEXIST) ||
	    renameat(b->folder, BLOCK_DRAFT, b->folder, path) != 0)
		return err_system(err, "write %s/%s", b->path, path);
	b->written += block->len;
	return 0;
}

static int
save_block(void *arg, const struct block *block, const unsigned char *data,
    struct err *err)
{
	struct backup *b = arg;
	char path[BLOCK_PATH_SIZE];

	block_path(block, path);
	/* Blocks of a whole backup are on the disk.  Blocks that a killed
	 * backup left may not be. */
	if (!blocks_have(b->known, b->last.block_count, block) ||
	    !is_there(b, block, path))
		return write_block(b, block, data, path, err);
	b->had += block->len;
	return 0;
}

/* ---- files ---- */

static int64_t
backup_nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
backup_add_file(struct backup *b, const char *name, const struct stat *st)
{
	struct saved *file = manifest_add(&b->next, name);
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	file->mode = st->st_mode & 0777;
	file->uid = st->st_uid;
	file->gid = st->st_gid;
	if (!S_ISREG(st->st_mode))
		return;
	file->size = st->st_size;
	file->mtime_ns = backup_nanoseconds(st->st_mtim);
	if (file->mtime_ns < 0 ||
	    backup_nanoseconds(now) - file->mtime_ns < RECENT_NS)
		file->mtime_ns = 0;
}

/* The file is as it was in the last backup. */
static void
backup_carry(struct backup *b, const struct saved *file)
{
	struct saved *copy = manifest_add(&b->next, file->name);
	uint64_t first = copy->first;

	*copy = *file;
	copy->first = first;
	copy->count = 0;
	for (uint64_t i = 0; i < file->count; i++) {
		manifest_add_block(&b->next, &b->last.blocks[file->first + i]);
		b->had += b->last.blocks[file->first + i].len;
	}
}

/* ---- volumes ---- */

/* An unnamed copy of the file, made at once; -1: the file system cannot make
 * one. */
static int
clone_of(const struct backup *b, int fd)
{
	auto_close int copy = openat(b->folder, ".",
	    O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	return copy >= 0 && ioctl(copy, FICLONE, fd) == 0 ? steal_fd(&copy) :
							    -1;
}

/* Are all blocks of it still there?  Otherwise its volume is read again. */
static bool
has_all(const struct backup *b, const struct saved *last)
{
	char path[BLOCK_PATH_SIZE];

	for (uint64_t i = 0; i < last->count; i++) {
		const struct block *block = &b->last.blocks[last->first + i];

		block_path(block, path);
		if (!is_there(b, block, path))
			return false;
	}
	return true;
}

static bool
is_unchanged(const struct saved *last, const struct stat *st)
{
	return last != NULL && last->mtime_ns != 0 &&
	    last->size == st->st_size &&
	    last->mtime_ns == backup_nanoseconds(st->st_mtim);
}

/* A volume that is in use stays as in the last backup. */
static void
backup_leave(struct backup *b, const char *name, const struct saved *last)
{
	b->not_fresh++;
	(void)fprintf(stderr, "ilctl backup: %s is in use: %s\n", name,
	    last != NULL ? "it stays as in the last backup" : "it is left out");
	if (last != NULL)
		backup_carry(b, last);
}

static int
save_volume(void *arg, int dir, const char *volume, struct err *err)
{
	struct backup *b = arg;
	auto_free char *name = xprintf("%s/%s", b->sandbox, volume);
	const struct saved *last = manifest_find(&b->last, name);
	auto_close int fd = openat(dir, volume,
	    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	auto_close int copy = -1;
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 0; /* removed meanwhile */
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "%s", name);
	if (!S_ISREG(st.st_mode) || !manifest_is_name(name))
		return 0;
	if (last != NULL && !has_all(b, last))
		last = NULL;
	if (is_unchanged(last, &st)) {
		backup_carry(b, last);
		return 0;
	}
	if (!volume_lock(b->socket, fd, b->sandbox, b->wait_ms)) {
		backup_leave(b, name, last);
		return 0;
	}
	if (fstat(fd, &st) != 0)
		return err_system(err, "%s", name);
	backup_add_file(b, name, &st);
	copy = clone_of(b, fd);
	if (copy >= 0)
		(void)flock(fd, LOCK_UN);
	if (manifest_add_data(&b->next, copy >= 0 ? copy : fd, st.st_size,
		save_block, b, err) != 0)
		return err_wrap(err, "%s", name);
	return 0;
}

/* A sandbox that was removed meanwhile is left out. */
static int
save_sandbox(struct backup *b, const char *id, struct err *err)
{
	auto_free char *path = xprintf("%s/%s", b->config->base_dir, id);
	auto_free char *name = xprintf("%s/", id);
	struct stat st;

	b->sandbox = id;
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : err_system(err, "%s", path);
	backup_add_file(b, name, &st);
	if (volumes_each(b->config->base_dir, id, save_volume, b, err) == 0)
		return 0;
	if (err->code != ERR_NOT_FOUND)
		return -1;
	b->next.file_count--;
	return 0;
}

/* ---- the rest ---- */

static int
save_whole(struct backup *b, int at, const char *path, const char *name,
    const struct stat *like, struct err *err)
{
	auto_close int fd = openat(at, path,
	    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "%s", path);
	backup_add_file(b, name, &st);
	if (like != NULL) { /* it is a copy */
		struct saved *file = &b->next.files[b->next.file_count - 1];

		file->mode = like->st_mode & 0777;
		file->uid = like->st_uid;
		file->gid = like->st_gid;
	}
	return manifest_add_data(&b->next, fd, st.st_size, save_block, b, err);
}

static int
save_database(struct backup *b, struct db *db, struct err *err)
{
	auto_free char *path = xprintf("%s/" DATABASE_DRAFT, b->path);
	struct stat st;
	int result;

	(void)unlink(path);
	if (stat(b->config->database, &st) != 0)
		return err_system(err, "%s", b->config->database);
	result = db_copy(db, path, err);
	if (result == 0)
		result = save_whole(b, b->folder, DATABASE_DRAFT,
		    MANIFEST_DATABASE, &st, err);
	(void)unlink(path);
	return result;
}

/* Sandboxes are listed first.  A sandbox that is made in between has a row
 * without files, and its owner makes it anew; files without a row would be
 * nobody's. */
static int
save_all(struct backup *b, struct err *err)
{
	auto_db struct db *db = db_open(b->config->database, DB_READER, err);
	auto_free char *uids = xprintf("%s/.uids", b->config->base_dir);
	json_auto_t *rows = NULL;
	json_t *row;
	size_t i;

	if (db != NULL)
		rows = table_read(db, db_statement(db, STATEMENT_LIST_BACKUP),
		    err);
	if (rows == NULL || save_database(b, db, err) != 0)
		return -1;
	json_array_foreach(rows, i, row)
		if (save_sandbox(b, table_json_text(row, "id"), err) != 0)
			return -1;
	/* the last file, so that no uid of the sandboxes above is used again */
	if (access(uids, F_OK) == 0)
		return save_whole(b, AT_FDCWD, uids, MANIFEST_UIDS, NULL, err);
	return 0;
}

/* Remove blocks that the new backup does not need, and those that a killed
 * backup left. */
static void
sweep_blocks(const struct backup *b)
{
	auto_free struct block *needed = blocks_sorted(&b->next);
	char path[32];

	for (unsigned i = 0; i < 256; i++) {
		const struct dirent *entry;
		auto_dir DIR *dir = NULL;
		int fd;

		(void)snprintf(path, sizeof(path), "blocks/%02x", i);
		fd = openat(b->folder, path,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		dir = fd < 0 ? NULL : fdopendir(fd);
		while (dir != NULL && (entry = readdir(dir)) != NULL) {
			struct block block = { .len = 0 };

			if (text_parse_hex(entry->d_name, strlen(entry->d_name),
				block.hash, MANIFEST_HASH) &&
			    !blocks_have(needed, b->next.block_count, &block))
				(void)unlinkat(fd, entry->d_name, 0);
		}
	}
}

static int
backup_open(struct backup *b, struct err *err)
{
	if (sodium_init() < 0 || fd_make_dirs(b->path, 0700, err) != 0)
		return -1;
	b->folder = open(b->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->folder < 0 ||
	    (mkdirat(b->folder, "blocks", 0700) != 0 && errno != EEXIST))
		return err_system(err, "%s", b->path);
	if (manifest_lock(b->folder, true, err) != 0)
		return err_wrap(err, "%s", b->path);
	if (manifest_read(b->folder, &b->last, err) < 0)
		(void)fprintf(stderr, "ilctl backup: %s; it begins anew\n",
		    err->text);
	b->known = blocks_sorted(&b->last);
	return 0;
}

static int
make_backup(struct backup *b, struct err *err)
{
	b->next.time = clock_wall_ms() / 1000;
	if (backup_open(b, err) != 0 || save_all(b, err) != 0)
		return -1;
	if (syncfs(b->folder) != 0)
		return err_system(err, "write %s", b->path);
	if (manifest_write(b->folder, &b->next, err) != 0)
		return -1;
	sweep_blocks(b);
	return 0;
}

int
ctl_backup(struct ctl *ctl)
{
	struct backup b = { .config = &ctl->config, .folder = -1 };
	struct err err = { 0 };
	int result;

	if (!ctl_cut_wait(ctl, &b.wait_ms) || ctl->argc != 2 ||
	    *ctl->argv[1] == '-')
		return CTL_MISUSED;
	b.path = ctl->argv[1];
	b.socket = config_state_path(&ctl->config, SOCKET_BROKER_CTL);
	result = make_backup(&b, &err);
	if (result == 0)
		printf("%" PRIu64
		       " files; %s written, %s as in the last backup\n",
		    b.next.file_count, text_size(b.written).text,
		    text_size(b.had).text);
	cleanup_close(&b.folder);
	free(b.socket);
	free(b.known);
	manifest_release(&b.last);
	manifest_release(&b.next);
	if (result != 0)
		return ctl_fail("backup", &err);
	return b.not_fresh == 0 ? CTL_OK : CTL_FAILED;
}
