/* SPDX-License-Identifier: MIT */
/*
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/nodes.h"
#include "move/parcel.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/sandbox.h"
#include "volume/manifest.h"

#define DRAFT ".restored"
#define WORKERS_MOST 256

struct restore {
	const struct config *config;
	int folder;
	int base; /* IL_BASE_DIR */
	struct manifest m;
	int64_t bytes;
	unsigned char data[MANIFEST_BLOCK];
};

/* ---- is it whole? ---- */

static int
check_all(struct restore *r, struct err *err)
{
	if (manifest_find(&r->m, MANIFEST_DATABASE) == NULL)
		return err_set(err, ERR_INPUT,
		    "the backup is damaged: it has no database");
	for (uint64_t i = 0; i < r->m.block_count; i++) {
		if (block_read(r->folder, &r->m.blocks[i], r->data, err) != 0)
			return -1;
		r->bytes += r->m.blocks[i].len;
	}
	return 0;
}

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

static int
restore_make_place(struct restore *r, struct err *err)
{
	const struct config *config = r->config;
	auto_free char *database = xstrdup(config->database);

	if (fd_make_dirs(dirname(database), 0770, err) != 0 ||
	    fd_make_dirs(config->base_dir, 0700, err) != 0)
		return -1;
	r->base = open(config->base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r->base < 0 ? err_system(err, "%s", config->base_dir) : 0;
}

/* ---- writing ---- */

/* Write its bytes, its owner, and then its rights: changing the owner takes
 * some of these away. */
static int
restore_fill(const struct restore *r, int fd, const struct saved *file,
    struct err *err)
{
	if (manifest_fill(&r->m, r->folder, file, fd, err) != 0)
		return -1;
	if (fchown(fd, file->uid, file->gid) != 0 ||
	    fchmod(fd, file->mode) != 0 || fsync(fd) != 0)
		return err_system(err, "write %s", file->name);
	return 0;
}

/* Write a file under another name first. */
static int
restore_write_file(struct restore *r, int dir, const char *name,
    const struct saved *file, struct err *err)
{
	auto_free char *draft = xprintf("%s" DRAFT, name);
	auto_close int fd = -1;

	(void)unlinkat(dir, draft, 0);
	fd = openat(dir, draft,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_system(err, "write %s", file->name);
	if (restore_fill(r, fd, file, err) != 0) {
		(void)unlinkat(dir, draft, 0);
		return -1;
	}
	if (renameat(dir, draft, dir, name) != 0)
		return err_system(err, "write %s", file->name);
	return 0;
}

/* "<id>/" or "<id>/<volume>"; the manifest knows no other names. */
static int
write_of_sandbox(struct restore *r, const struct saved *file, struct err *err)
{
	char id[33] = "";
	const char *volume = file->name + sizeof(id);
	auto_close int dir = -1;

	memcpy(id, file->name, sizeof(id) - 1);
	if (mkdirat(r->base, id, 0700) != 0 && errno != EEXIST)
		return err_system(err, "make %s", id);
	dir = openat(r->base, id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_system(err, "open %s", id);
	if (*volume != '\0')
		return restore_write_file(r, dir, volume, file, err) != 0 ||
			fsync(dir) != 0 ?
		    -1 :
		    0;
	if (fchown(dir, file->uid, file->gid) != 0 ||
	    fchmod(dir, file->mode) != 0)
		return err_system(err, "give %s to its owner", id);
	return 0;
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
		return err_system(err, "%s", r->config->base_dir);
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
	    open_backup(r, path, err) != 0 || check_all(r, err) != 0)
		return -1;
	if (check)
		return 0;
	return restore_make_place(r, err) != 0 ? -1 : write_all(r, err);
}

/* ---- one person ---- */

/* Give the sandbox its whole time again, or it would expire at once. */
static int
restore_renew(struct db *db, const struct config *config, int64_t user_id,
    struct err *err)
{
	struct sandbox sandbox;

	if (sandbox_find(db, user_id, &sandbox, err) < 0)
		return -1;
	return sandbox_touch(db, sandbox.id, config->retention_seconds, err) <
		0 ?
	    -1 :
	    0;
}

static int
let_in(const struct config *config, struct parcel *p, int64_t user_id,
    struct err *err)
{
	auto_db struct db *db = db_open(config->database, DB_NODE, err);
	auto_close int base = open(config->base_dir,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (db == NULL)
		return -1;
	if (base < 0)
		return err_system(err, "%s", config->base_dir);
	return arrival_store(db, base, user_id, p, err);
}

static int
send_to(const struct config *config, const struct parcel *p, int64_t user_id,
    const char *to, struct err *err)
{
	struct node_table *table = NULL;
	const struct node_entry *node;
	int result = -1;

	if (node_table_open(&table, config, err) != 0)
		return -1;
	node = node_table_named(table, to);
	if (node != NULL)
		result = nodes_put(config, node, "people", user_id, p, err);
	else
		(void)err_set(err, ERR_CONFIG, "%s is no node of IL_NODES", to);
	node_table_free(table);
	return result;
}

static int
write_copy(const struct restore *r, const char *path, struct err *err)
{
	auto_close int fd = open(path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct saved *file = manifest_find(&r->m, MANIFEST_DATABASE);

	if (file == NULL)
		return err_set(err, ERR_INPUT,
		    "the backup is damaged: it has no database");
	return fd < 0 ? err_system(err, "%s", path) :
			manifest_fill(&r->m, r->folder, file, fd, err);
}

static int
restore_carry(const struct restore *r, const char *path, int64_t user_id,
    const char *to, struct err *err)
{
	auto_db struct db *db = NULL;
	struct parcel p;
	int result = -1;

	if (write_copy(r, path, err) != 0)
		return -1;
	db = db_open(path, DB_ADMIN, err);
	if (db == NULL || db_migrate(db, err) < 0 ||
	    restore_renew(db, r->config, user_id, err) != 0)
		return -1;
	parcel_init(&p);
	if (parcel_pack_saved(&p, r->folder, &r->m, db, user_id,
		to != NULL ? to : "", err) == 0)
		result = to != NULL ? send_to(r->config, &p, user_id, to, err) :
				      let_in(r->config, &p, user_id, err);
	parcel_release(&p);
	return result;
}

/* Restore one person, while the service runs: onto this host, or onto the node
 * of that name (NULL: here).  The stream is that of a person who moves.  The
 * database of the backup is written into a folder of its own, brought up to
 * date, and asked for the rows.  The sandbox has its whole time again.  1: they
 * were there. */
static int
restore_person(const struct restore *r, int64_t user_id, const char *to,
    struct err *err)
{
	static const char *const left[] = { "", "-wal", "-shm", "-turn" };
	auto_free char *draft = config_state_path(r->config, "restore-XXXXXX");
	auto_free char *path = NULL;
	int result;

	if (mkdtemp(draft) == NULL)
		return err_system(err, "%s", draft);
	path = xprintf("%s/database", draft);
	result = restore_carry(r, path, user_id, to, err);
	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		auto_free char *name = xprintf("%s%s", path, left[i]);

		(void)unlink(name);
	}
	(void)rmdir(draft);
	return result;
}

/* [--user id [--to name]], with which there are no other options. */
static int
restore_one(struct restore *r, const char *path, const char *user,
    const char *to, struct err *err)
{
	int64_t user_id;
	int result;

	if (!text_parse_snowflake(user, &user_id))
		return err_set(err, ERR_CONFIG, "%s is no user's id", user);
	if (open_backup(r, path, err) != 0)
		return -1;
	result = restore_person(r, user_id, to, err);
	if (result >= 0)
		printf("user %s of %s UTC: %s\n", user,
		    text_time(r->m.time).text,
		    result == 0 ? "restored" : "is there already");
	return result;
}

int
ctl_restore(struct ctl *ctl)
{
	struct restore r = { .config = &ctl->config, .folder = -1, .base = -1 };
	const char *user = ctl_cut(ctl, "--user", 2);
	const char *to = ctl_cut(ctl, "--to", 2);
	bool force = ctl_cut(ctl, "-f", 1) != NULL;
	bool check = ctl_cut(ctl, "-n", 1) != NULL;
	const char *folder = ctl->argv[1];
	struct err err = { 0 };
	int result;

	if (ctl->argc != 2 || *folder == '-' ||
	    (user != NULL ? force || check : to != NULL))
		return CTL_MISUSED;
	if (user != NULL)
		result = restore_one(&r, folder, user, to, &err);
	else
		result = restore(&r, folder, force, check, &err);
	if (result == 0 && user == NULL)
		printf("%" PRIu64 " files of %s UTC, %s: %s\n", r.m.file_count,
		    text_time(r.m.time).text, text_size(r.bytes).text,
		    check ? "all is whole" : "restored");
	cleanup_close(&r.base);
	cleanup_close(&r.folder);
	manifest_release(&r.m);
	return result >= 0 ? CTL_OK : ctl_fail("restore", &err);
}
