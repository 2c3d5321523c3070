/* SPDX-License-Identifier: MIT */
/*
 * `ilctl backup`: database and sandboxes into a folder (manifest.h), while the
 * service runs.  A volume is read under the lock that its loop device would
 * have, so it is never copied while it is mounted; one that has not changed is
 * not read at all.  Nothing of the last backup is touched before the new one is
 * whole and on the disk.
 *
 * `ilctl restore` puts in its place again what `ilctl backup` has written.  All
 * of the backup is read and compared with its hashes before anything is
 * written.  Each file gets its name when it is whole and on the disk, the
 * database last.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
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
#include "move/parcel.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/sandbox.h"
#include "volume/manifest.h"

/* A file that was written so recently may be written again within the same tick
 * of the kernel's clock, and its time would not change. */
#define RECENT_NS INT64_C(2000000000)
#define DATABASE_DRAFT "database.new"
#define BLOCK_DRAFT "blocks/new"
#define DRAFT ".restored"
#define WORKERS_MOST 256

struct backup {
	const struct config *config;
	const char *path;
	int folder;
	int64_t wait_ms;
	struct manifest last;
	struct manifest next;
	struct block *known; /* of the last one, by their hash */
	int64_t written;     /* bytes */
	size_t not_fresh;
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
	file->size = st->st_size;
	file->mtime_ns = backup_nanoseconds(st->st_mtim);
	if (file->mtime_ns < 0 ||
	    backup_nanoseconds(now) - file->mtime_ns < RECENT_NS)
		file->mtime_ns = 0;
}

/* ---- volumes ---- */

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

static int
save_volume(void *arg, int dir, const char *sandbox, const char *volume,
    struct err *err)
{
	struct backup *b = arg;
	auto_free char *name = xprintf("%s/%s", sandbox, volume);
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
	if (last != NULL && last->mtime_ns != 0 && last->size == st.st_size &&
	    last->mtime_ns == backup_nanoseconds(st.st_mtim)) {
		manifest_copy(&b->next, &b->last, last);
		return 0;
	}
	if (!volume_lock(b->config, fd, sandbox, b->wait_ms)) {
		b->not_fresh++;
		(void)fprintf(stderr, "ilctl backup: %s is in use: %s\n", name,
		    last != NULL ? "it stays as in the last backup" :
				   "it is left out");
		if (last != NULL)
			manifest_copy(&b->next, &b->last, last);
		return 0;
	}
	if (fstat(fd, &st) != 0)
		return err_system(err, "%s", name);
	backup_add_file(b, name, &st);
	/* An unnamed copy is made at once, where the file system can. */
	copy = openat(b->folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (copy >= 0 && ioctl(copy, FICLONE, fd) != 0)
		cleanup_close(&copy);
	if (copy >= 0)
		(void)flock(fd, LOCK_UN);
	if (manifest_add_data(&b->next, copy >= 0 ? copy : fd, st.st_size,
		save_block, b, err) != 0)
		return err_wrap(err, "%s", name);
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
		if (volumes_each(b->config->base_dir,
			table_json_text(row, "id"), save_volume, b, err) != 0 &&
		    err->code != ERR_NOT_FOUND) /* removed meanwhile */
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
ctl_backup(struct ctl *ctl, struct err *err)
{
	struct backup b = { .config = &ctl->config, .folder = -1 };
	int result;

	if (!ctl_cut_wait(ctl, &b.wait_ms) || ctl->argc != 2 ||
	    *ctl->argv[1] == '-')
		return CTL_MISUSED;
	b.path = ctl->argv[1];
	result = make_backup(&b, err);
	if (result == 0)
		printf("%" PRIu64
		       " files; %s written, %s as in the last backup\n",
		    b.next.file_count, text_size(b.written).text,

		    text_size(manifest_bytes(&b.next) - b.written).text);
	cleanup_close(&b.folder);
	free(b.known);
	manifest_release(&b.last);
	manifest_release(&b.next);
	if (result != 0)
		return -1;
	return b.not_fresh == 0 ? CTL_OK : CTL_FAILED;
}

/* ---- ilctl restore ---- */

struct restore {
	const struct config *config;
	int folder;
	int base; /* IL_BASE_DIR */
	struct manifest m;
	unsigned char data[MANIFEST_BLOCK];
};

/* ---- is there a place for it? ---- */

/* Lock a file that a program of ours locks while it runs.  The lock stays until
 * we end, so that the program does not start meanwhile.  program NULL: the file
 * is the database.  SQLite locks a part of it while any program has it open,
 * il-fcgi or an operator's shell, whose commits would be lost. */
static int
lock_out(const char *path, const char *program, struct err *err)
{
	const struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_system(err, "%s", path);
	if ((program != NULL ? flock(fd, LOCK_EX | LOCK_NB) :
			       fcntl(fd, F_OFD_SETLK, &all)) == 0)
		return 0;
	(void)close(fd);
	return program != NULL ?
	    err_set(err, ERR_BUSY, "%s is running: stop the service first",
		program) :
	    err_set(err, ERR_BUSY,
		"%s is in use: stop il-fcgi, and who else has it open", path);
}

static int
lock_all_out(const struct config *config, struct err *err)
{
	auto_free char *broker = config_state_path(config, "instance");
	auto_free char *run = config_state_path(config, "run.lock");

	if (lock_out(run, "ilctl run", err) != 0 ||
	    lock_out(broker, "il-sandboxd", err) != 0 ||
	    lock_out(config->database, NULL, err) != 0)
		return -1;
	for (int slot = 0; slot < WORKERS_MOST; slot++) {
		auto_free char *name = xprintf("worker/%d.lock", slot);
		auto_free char *path = config_state_path(config, name);

		if (lock_out(path, "il-worker", err) != 0)
			return -1;
	}
	return 0;
}

static bool
has_sandboxes(const struct restore *r)
{
	auto_dir DIR *dir = opendir(r->config->base_dir);
	const struct dirent *entry;
	bool found = false;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		found = found || entry->d_name[0] != '.';
	return found;
}

/* Is there room for the backup?  Nothing is made yet. */
static int
restore_check_place(const struct restore *r, bool force, struct err *err)
{
	const struct config *config = r->config;

	if (lock_all_out(config, err) != 0)
		return -1;
	if (!force && access(config->database, F_OK) == 0)
		return err_set(err, ERR_CONFLICT,
		    "there is a database already (%s): -f replaces it",
		    config->database);
	if (!force && has_sandboxes(r))
		return err_set(err, ERR_CONFLICT,
		    "there are sandboxes already in %s: -f replaces them",
		    config->base_dir);
	return 0;
}

/* ---- writing ---- */

/* Write a file under another name first: its bytes, its owner, and then its
 * rights, as changing the owner takes some of these away. */
static int
restore_write_file(struct restore *r, int dir, const char *name,
    const struct saved *file, struct err *err)
{
	auto_free char *draft = xprintf("%s" DRAFT, name);
	auto_close int fd = -1;

	(void)unlinkat(dir, draft, 0);
	fd = openat(dir, draft,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && manifest_fill(&r->m, r->folder, file, fd, err) != 0) {
		(void)unlinkat(dir, draft, 0);
		return -1;
	}
	if (fd >= 0 && fchown(fd, file->uid, file->gid) == 0 &&
	    fchmod(fd, file->mode) == 0 && fsync(fd) == 0 &&
	    renameat(dir, draft, dir, name) == 0)
		return 0;
	(void)err_system(err, "write %s", file->name);
	(void)unlinkat(dir, draft, 0);
	return -1;
}

/* "<id>/<volume>"; the folder is its volumes' owner's. */
static int
write_of_sandbox(struct restore *r, const struct saved *file, struct err *err)
{
	auto_free char *id = xstrndup(file->name, SANDBOX_ID_LEN);
	auto_close int dir = -1;

	if (mkdirat(r->base, id, 0700) != 0 && errno != EEXIST)
		return err_system(err, "make %s", id);
	dir = openat(r->base, id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fchown(dir, file->uid, file->gid) != 0 ||
	    fchmod(dir, 0700) != 0)
		return err_system(err, "open %s", id);
	return restore_write_file(r, dir, file->name + SANDBOX_ID_LEN + 1, file,
		   err) != 0 ||
		fsync(dir) != 0 ?
	    -1 :
	    0;
}

/* Remove files that an older database has left beside it. */
static int
write_database(struct restore *r, struct err *err)
{
	static const char *const beside[] = { "-wal", "-shm" };
	const struct saved *file = manifest_find(&r->m, MANIFEST_DATABASE);
	auto_free char *draft = xprintf("%s.new", r->config->database);
	auto_free char *copy = xstrdup(r->config->database);
	auto_close int dir = -1;

	if (restore_write_file(r, AT_FDCWD, draft, file, err) != 0)
		return -1;
	for (size_t i = 0; i < 2; i++) {
		auto_free char *path = xprintf("%s%s", r->config->database,
		    beside[i]);

		(void)unlink(path);
	}
	dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || rename(draft, r->config->database) != 0 ||
	    fsync(dir) != 0)
		return err_system(err, "%s", r->config->database);
	return 0;
}

static int
write_all(struct restore *r, struct err *err)
{
	const struct config *config = r->config;
	auto_free char *database = xstrdup(config->database);

	if (fd_make_dirs(dirname(database), 0770, err) != 0 ||
	    fd_make_dirs(config->base_dir, 0700, err) != 0)
		return -1;
	r->base = open(config->base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->base < 0)
		return err_system(err, "%s", config->base_dir);
	for (uint64_t i = 0; i < r->m.file_count; i++) {
		const struct saved *file = &r->m.files[i];

		if (strcmp(file->name, MANIFEST_DATABASE) == 0)
			continue;
		if ((strcmp(file->name, MANIFEST_UIDS) == 0 ?
			    restore_write_file(r, r->base, ".uids", file, err) :
			    write_of_sandbox(r, file, err)) != 0)
			return -1;
	}
	if (fsync(r->base) != 0)
		return err_system(err, "%s", config->base_dir);
	return write_database(r, err);
}

static int
open_backup(struct restore *r, const char *path, struct err *err)
{
	int found;

	r->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sodium_init() < 0 || r->folder < 0)
		return err_system(err, "%s", path);
	if (manifest_lock(r->folder, false, err) != 0)
		return err_wrap(err, "%s", path);
	found = manifest_read(r->folder, &r->m, err);
	if (found == 1)
		return err_set(err, ERR_NOT_FOUND, "there is no backup in %s",
		    path);
	return found < 0 ? -1 : 0;
}

/* Anything in the way is reported at once: to read a large backup takes
 * long. */
static int
restore(struct restore *r, const char *path, bool force, bool check,
    struct err *err)
{
	if ((!check && restore_check_place(r, force, err) != 0) ||
	    open_backup(r, path, err) != 0)
		return -1;
	if (manifest_find(&r->m, MANIFEST_DATABASE) == NULL)
		return err_set(err, ERR_INPUT,
		    "the backup is damaged: it has no database");
	for (uint64_t i = 0; i < r->m.block_count; i++)
		if (block_read(r->folder, &r->m.blocks[i], r->data, err) != 0)
			return -1;
	return check ? 0 : write_all(r, err);
}

/* ---- one person ---- */

/* Pack a person out of the backup's database, which is written to the path and
 * brought up to date.  Their sandbox has its whole time again, or it would
 * expire at once. */
static int
restore_pack(const struct restore *r, const char *path, int64_t user_id,
    const char *to, struct parcel *p, struct err *err)
{
	const struct saved *file = manifest_find(&r->m, MANIFEST_DATABASE);
	auto_close int fd = open(path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	auto_db struct db *db = NULL;
	struct sandbox sandbox;

	if (file == NULL)
		return err_set(err, ERR_INPUT,
		    "the backup is damaged: it has no database");
	if (fd < 0)
		return err_system(err, "%s", path);
	if (manifest_fill(&r->m, r->folder, file, fd, err) != 0)
		return -1;
	db = db_open(path, DB_ADMIN, err);
	return db == NULL || db_migrate(db, err) < 0 ||
		sandbox_find(db, user_id, &sandbox, err) < 0 ||
		sandbox_touch(db, sandbox.id, r->config->retention_seconds,
		    err) < 0 ?
	    -1 :
	    parcel_pack_saved(p, r->folder, &r->m, db, user_id,
		to != NULL ? to : "", err);
}

/* To the node of that name, or with NULL onto this host.  1: they were there.
 */
static int
restore_carry(const struct config *config, const struct parcel *p,
    int64_t user_id, const char *to, struct err *err)
{
	auto_node_table struct node_table *table = NULL;
	auto_close int base = -1;
	auto_db struct db *db = NULL;
	const struct node_entry *node;

	if (to == NULL) {
		base = open(config->base_dir,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (base < 0)
			return err_system(err, "%s", config->base_dir);
		db = db_open(config->database, DB_NODE, err);
		return db == NULL ? -1 :
				    arrival_store(db, base, user_id, p, err);
	}
	if (node_table_open(&table, config, err) != 0)
		return -1;
	node = node_table_named(table, to);
	return node != NULL ?
	    nodes_put(config, node, "people", user_id, p, err) :
	    err_set(err, ERR_CONFIG, "%s is no node of IL_NODES", to);
}

/* [--user id [--to name]]: one person, while the service runs.  The stream is
 * that of a person who moves. */
static int
restore_person(struct restore *r, const char *path, const char *user,
    const char *to, struct err *err)
{
	static const char *const left[] = { "", "-wal", "-shm", "-turn" };
	auto_free char *draft = config_state_path(r->config, "restore-XXXXXX");
	auto_free char *database = NULL;
	struct parcel p;
	int64_t user_id;
	int result;

	if (!text_parse_snowflake(user, &user_id))
		return err_set(err, ERR_CONFIG, "%s is no user's id", user);
	if (open_backup(r, path, err) != 0)
		return -1;
	if (mkdtemp(draft) == NULL)
		return err_system(err, "%s", draft);
	database = xprintf("%s/database", draft);
	parcel_init(&p);
	result = restore_pack(r, database, user_id, to, &p, err);
	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		auto_free char *name = xprintf("%s%s", database, left[i]);

		(void)unlink(name);
	}
	(void)rmdir(draft);
	if (result == 0)
		result = restore_carry(r->config, &p, user_id, to, err);
	parcel_release(&p);
	if (result >= 0)
		printf("user %s of %s UTC: %s\n", user,
		    text_time(r->m.time).text,
		    result == 0 ? "restored" : "is there already");
	return result;
}

int
ctl_restore(struct ctl *ctl, struct err *err)
{
	struct restore r = { .config = &ctl->config, .folder = -1, .base = -1 };
	const char *user = ctl_cut(ctl, "--user", 2);
	const char *to = ctl_cut(ctl, "--to", 2);
	bool force = ctl_cut(ctl, "-f", 1) != NULL;
	bool check = ctl_cut(ctl, "-n", 1) != NULL;
	const char *folder = ctl->argv[1];
	int result;

	if (ctl->argc != 2 || *folder == '-' ||
	    (user != NULL ? force || check : to != NULL))
		return CTL_MISUSED;
	if (user != NULL)
		result = restore_person(&r, folder, user, to, err);
	else
		result = restore(&r, folder, force, check, err);
	if (result == 0 && user == NULL)
		printf("%" PRIu64 " files of %s UTC, %s: %s\n", r.m.file_count,
		    text_time(r.m.time).text,
		    text_size(manifest_bytes(&r.m)).text,
		    check ? "all is whole" : "restored");
	cleanup_close(&r.base);
	cleanup_close(&r.folder);
	manifest_release(&r.m);
	return result >= 0 ? CTL_OK : -1;
}
