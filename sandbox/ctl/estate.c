/* SPDX-License-Identifier: MIT */
/*
 * The table of the folders below IL_STATE_DIR, and how they are given to the
 * users of the programs without following anything that one of them could have
 * put there.
 */
#include "estate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "account.h"

#define DEPTH_MAX 8
#define ROOT (-1)

struct place {
	const char *name;
	int user;	/* an account, or ROOT */
	int user_group; /* an account whose own group it is; ROOT: 0 */
	int group;	/* or one of enum account_group; -1: none */
	mode_t mode;
};

/* As inline.tmpfiles has them. */
static const struct place places[] = {
	{ "broker", ROOT, ROOT, -1, 0755 },
	{ "broker/worker", ROOT, ROOT, ACCOUNT_GROUP_WORKER, 02710 },
	{ "broker/api", ROOT, ROOT, ACCOUNT_GROUP_API, 02710 },
	{ "broker/ctl", ROOT, ROOT, -1, 0700 },
	{ "front", ACCOUNT_FCGI, ACCOUNT_API, -1, 02750 },
	{ "worker", ACCOUNT_WORKER, ACCOUNT_WORKER, -1, 0755 },
	{ "sessions", ACCOUNT_API, ACCOUNT_API, -1, 0700 },
	{ "files", ACCOUNT_API, ACCOUNT_API, -1, 0700 },
	{ "nginx", ACCOUNT_NGINX, ACCOUNT_NGINX, -1, 0700 },
	/* Before il-sandboxd, which counts what is written there. */
	{ "nginx/body", ACCOUNT_NGINX, ACCOUNT_NGINX, -1, 0700 },
};

#define PLACES (sizeof(places) / sizeof(places[0]))

static int give_all(int folder, uid_t from, uid_t uid, gid_t gid, int depth);

/* One entry, if it is whose the folder was: no link to another's file. */
static int
give_entry(int folder, const char *name, uid_t from, uid_t uid, gid_t gid,
    int depth)
{
	auto_close int below = -1;
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	if (st.st_uid != from || (!S_ISDIR(st.st_mode) && st.st_nlink != 1))
		return 0;
	if (S_ISDIR(st.st_mode)) {
		below = openat(folder, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0 || depth >= DEPTH_MAX)
			return -1;
		if (give_all(below, from, uid, gid, depth + 1) != 0)
			return -1;
	}
	return fchownat(folder, name, uid, gid, AT_SYMLINK_NOFOLLOW);
}

/* All entries of a folder, through its descriptor. */
static int
give_all(int folder, uid_t from, uid_t uid, gid_t gid, int depth)
{
	DIR *dir = fdopendir(dup(folder));
	const struct dirent *e;
	int rc = 0;

	if (dir == NULL)
		return -1;
	while (rc == 0 && (e = readdir(dir)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = give_entry(folder, e->d_name, from, uid, gid,
			    depth);
	(void)closedir(dir);
	return rc;
}

/* The folder last: if this is broken off, the next try begins again. */
static int
give_folder(const char *path, uid_t uid, gid_t gid, mode_t mode,
    struct err *err)
{
	auto_close int fd = open(path,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "%s", path);
	if (st.st_uid != uid && uid != 0 &&
	    give_all(fd, st.st_uid, uid, gid, 0) != 0)
		return err_system(err, "change the owner in %s", path);
	if (fchown(fd, uid, gid) != 0 || fchmod(fd, mode) != 0)
		return err_system(err, "change the owner of %s", path);
	return 0;
}

/* In the order of the table: a folder comes before those in it. */
int
estate_prepare(const struct config *config, const struct accounts *accounts,
    struct err *err)
{
	if (accounts->separate && chmod(config->state_dir, 0755) != 0)
		return err_system(err, "%s", config->state_dir);
	for (size_t i = 0; i < PLACES; i++) {
		const struct place *p = &places[i];
		auto_free char *path = config_state_path(config, p->name);
		uid_t uid = p->user == ROOT ? 0 : accounts->of[p->user].uid;
		gid_t gid = p->group >= 0 ? accounts->groups[p->group] :
		    p->user_group == ROOT ? 0 :
					    accounts->of[p->user_group].gid;

		if (fd_make_dirs(path, 0750, err) != 0 ||
		    (accounts->separate &&
			give_folder(path, uid, gid, p->mode, err) != 0))
			return -1;
	}
	if (*config->api_files == '\0')
		return 0;
	if (fd_make_dirs(config->api_files, 0700, err) != 0)
		return -1;
	if (!accounts->separate)
		return 0;
	return give_folder(config->api_files, accounts->of[ACCOUNT_API].uid,
	    accounts->of[ACCOUNT_API].gid, 0700, err);
}

/* A file in a folder that only we, or the operator, can write to. */
static int
give_file(const char *path, uid_t uid, gid_t gid, mode_t mode, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : err_system(err, "%s", path);
	if (S_ISLNK(st.st_mode) || st.st_nlink != 1)
		return err_set(err, ERR_CONFIG, "%s: is a link", path);
	if (lchown(path, uid, gid) != 0 || chmod(path, mode) != 0)
		return err_system(err, "change the owner of %s", path);
	return 0;
}

/* The folder of a file that the operator put elsewhere: one that root alone may
 * enter is opened to the file's group, to pass and not to list. */
static int
let_in(const char *file, gid_t gid, struct err *err)
{
	auto_free char *copy = xstrdup(file);
	const char *folder = dirname(copy);
	auto_close int fd = open(folder,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "%s", folder);
	if ((st.st_mode & S_IXOTH) != 0 || st.st_uid != 0 || st.st_gid != 0)
		return 0;
	if (fchown(fd, (uid_t)-1, gid) != 0 ||
	    fchmod(fd, (st.st_mode & 07700) | S_IXGRP) != 0)
		return err_system(err, "change the group of %s", folder);
	return 0;
}

/* A file that the operator may have put elsewhere. */
static int
share_file(const char *path, gid_t gid, mode_t mode, struct err *err)
{
	if (let_in(path, gid, err) != 0)
		return -1;
	return give_file(path, 0, gid, mode, err);
}

/* Files in the state folder, and those that the operator has put elsewhere. */
int
estate_share(const struct config *config, const struct accounts *accounts,
    struct err *err)
{
	static const char *const beside[] = { "-wal", "-shm", "-turn" };
	auto_free char *wake = config_state_path(config, "wake");
	auto_free char *conf = config_state_path(config, "nginx.conf");
	auto_free char *key = config_state_path(config, "standin.key");
	gid_t db = accounts->groups[ACCOUNT_GROUP_DB];
	gid_t api = accounts->of[ACCOUNT_API].gid;
	const struct account *standin = &accounts->of[ACCOUNT_STANDIN];

	if (!accounts->separate)
		return 0;
	if (mkfifo(wake, 0660) != 0)
		return err_system(err, "make %s", wake);
	if (give_file(wake, accounts->of[ACCOUNT_WORKER].uid, db, 0660, err) !=
		0 ||
	    give_file(conf, 0, accounts->of[ACCOUNT_NGINX].gid, 0640, err) !=
		0 ||
	    give_file(key, standin->uid, standin->gid, 0600, err) != 0 ||
	    (*config->api_tokens_file != '\0' &&
		share_file(config->api_tokens_file, api, 0640, err) != 0) ||
	    share_file(config->database, db, 0660, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		auto_buf struct buf path = BUF_INIT(8192);

		buf_addf(&path, "%s%s", config->database, beside[i]);
		if (give_file(buf_str(&path), 0, db, 0660, err) != 0)
			return -1;
	}
	return 0;
}
