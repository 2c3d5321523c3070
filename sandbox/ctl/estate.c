/* SPDX-License-Identifier: MIT */
/*
 * The table of the folders below IL_STATE_DIR, and how they are given to the
 * users of the programs without following anything that one of them could have
 * put there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "prepare.h"
#include "run.h"

#define DEPTH_MAX 8
#define ROOT (-1)

/* As inline.tmpfiles has them, but for the stand-in's. */
static const struct {
	const char *name;
	int user;  /* an account, or ROOT */
	int group; /* its own or another one's, or ROOT */
	mode_t mode;
} places[] = {
	{ "broker", ROOT, ROOT, 0755 },
	{ "broker/worker", ROOT, ACCOUNT_GROUP_WORKER, 02710 },
	{ "broker/api", ROOT, ACCOUNT_GROUP_API, 02710 },
	{ "broker/ctl", ROOT, ROOT, 0700 },
	{ "front", ACCOUNT_FCGI, ACCOUNT_API, 02750 },
	{ "answers", ACCOUNT_FCGI, ACCOUNT_GROUP_DB, 02750 },
	{ "cancels", ACCOUNT_FCGI, ACCOUNT_GROUP_DB, 02770 },
	{ "worker", ACCOUNT_WORKER, ACCOUNT_WORKER, 0755 },
	{ "sessions", ACCOUNT_API, ACCOUNT_API, 0700 },
	/* Here nginx makes its socket for il-api, of nobody else's. */
	{ "nodes", ACCOUNT_NGINX, ACCOUNT_GROUP_NODES, 0750 },
	{ "standin", ACCOUNT_STANDIN, ACCOUNT_STANDIN, 0700 },
	{ "nginx", ACCOUNT_NGINX, ACCOUNT_NGINX, 0700 },
	/* Before il-sandboxd, which counts what is written there. */
	{ "nginx/body", ACCOUNT_NGINX, ACCOUNT_NGINX, 0700 },
	/* IL_API_FILES, wherever that is. */
	{ NULL, ACCOUNT_API, ACCOUNT_API, 0700 },
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
	auto_dir DIR *dir = fdopendir(dup(folder));
	const struct dirent *e;
	int rc = 0;

	if (dir == NULL)
		return -1;
	while (rc == 0 && (e = readdir(dir)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = give_entry(folder, e->d_name, from, uid, gid,
			    depth);
	return rc;
}

/* Make it if it is missing, and as root give it away with all that is in it.
 * The folder comes last: if this is broken off, the next try begins again. */
static int
make_folder(const struct run *run, const char *path, int user, int group,
    mode_t mode, struct err *err)
{
	uid_t uid = user == ROOT ? 0 : run->uids[user];
	gid_t gid = group == ROOT ? 0 : run->gids[group];
	auto_close int fd = -1;
	struct stat st;

	if (fd_make_dirs(path, mode & 0750, err) != 0)
		return -1;
	if (!run->separate)
		return 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "%s", path);
	if (st.st_uid != uid && uid != 0 &&
	    give_all(fd, st.st_uid, uid, gid, 0) != 0)
		return err_system(err, "change the owner in %s", path);
	if (fchown(fd, uid, gid) != 0 || fchmod(fd, mode) != 0)
		return err_system(err, "change the owner of %s", path);
	return 0;
}

/* Files that are there when the operator names a folder outside of ours may be
 * anybody's, and must not be given to il-api.  lost+found is a new file
 * system's. */
static int
refuse_others_files(const struct run *run, const char *path, struct err *err)
{
	auto_free char *ours = config_state_path(run->config, "files");
	auto_dir DIR *dir = opendir(path);
	struct stat st;

	if (!run->separate || dir == NULL || strcmp(path, ours) == 0 ||
	    fstat(dirfd(dir), &st) != 0 || st.st_uid == run->uids[ACCOUNT_API])
		return 0;
	for (const struct dirent *e = readdir(dir); e != NULL;
	     e = readdir(dir)) {
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0 &&
		    strcmp(e->d_name, "lost+found") != 0)
			return err_set(err, ERR_CONFIG,
			    "IL_API_FILES: %s belongs to another user and "
			    "holds %s; all in it would be il-api's: name an "
			    "empty folder",
			    path, e->d_name);
	}
	return 0;
}

/* Where people arrive, the sandboxes are il-node's; il-sandboxd may pass by
 * owners. */
static int
give_sandboxes(const struct run *run, struct err *err)
{
	return *run->config->nodes == '\0' ?
	    0 :
	    make_folder(run, run->config->base_dir, ACCOUNT_NODE, ACCOUNT_NODE,
		0700, err);
}

/* In the order of the table: a folder comes before those in it. */
int
estate_prepare(const struct run *run, struct err *err)
{
	const struct config *config = run->config;

	if (run->separate && chmod(config->state_dir, 0755) != 0)
		return err_system(err, "%s", config->state_dir);
	for (size_t i = 0; i < PLACES; i++) {
		auto_free char *path = places[i].name == NULL ?
		    xstrdup(config->api_files) :
		    config_state_path(config, places[i].name);

		if (places[i].name == NULL &&
		    refuse_others_files(run, path, err) != 0)
			return -1;
		if (make_folder(run, path, places[i].user, places[i].group,
			places[i].mode, err) != 0)
			return -1;
	}
	return give_sandboxes(run, err);
}

/* A secret that its group, or everybody, may reach and read stays as it is: one
 * of Kubernetes, say, a link on a file system that is read-only.  Returns 1
 * then.  0: it is to be given; -1: it is such a one, and the group may not read
 * it. */
static int
is_readable(const char *path, gid_t gid, struct err *err)
{
	auto_free char *copy = xstrdup(path);
	struct stat st;
	struct stat link;

	if (stat(dirname(copy), &st) != 0 || (st.st_mode & S_IXOTH) == 0 ||
	    lstat(path, &link) != 0 || stat(path, &st) != 0)
		return 0;
	if ((st.st_mode & S_IROTH) != 0 ||
	    ((st.st_mode & S_IRGRP) != 0 && st.st_gid == gid))
		return 1;
	if (!S_ISLNK(link.st_mode) &&
	    (access(path, W_OK) == 0 || errno != EROFS))
		return 0;
	return err_set(err, ERR_CONFIG,
	    "%s: il-api may not read it: give it the mode 0444, or 0440 and "
	    "the group %lu",
	    path, (unsigned long)gid);
}

/* A file, if it is there.  The operator may have put it elsewhere: where its
 * folder is one that root alone may enter, that is opened to the file's group,
 * to pass and not to list. */
static int
give_file(const char *path, uid_t uid, gid_t gid, mode_t mode, struct err *err)
{
	auto_free char *copy = xstrdup(path);
	const char *folder = dirname(copy);
	auto_close int fd = open(folder,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "%s", folder);
	if ((st.st_mode & S_IXOTH) == 0 && st.st_uid == 0 && st.st_gid == 0 &&
	    (fchown(fd, (uid_t)-1, gid) != 0 ||
		fchmod(fd, (st.st_mode & 07700) | S_IXGRP) != 0))
		return err_system(err, "change the group of %s", folder);
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : err_system(err, "%s", path);
	if (S_ISLNK(st.st_mode) || st.st_nlink != 1)
		return err_set(err, ERR_CONFIG, "%s: is a link", path);
	if (lchown(path, uid, gid) != 0 || chmod(path, mode) != 0)
		return err_system(err, "change the owner of %s", path);
	return 0;
}

/* Files in the state folder, and those that the operator has put elsewhere. */
int
estate_share(const struct run *run, struct err *err)
{
	const struct config *config = run->config;
	const gid_t db = run->gids[ACCOUNT_GROUP_DB];
	auto_free char *wake = config_state_path(config, "wake");
	auto_free char *conf = config_state_path(config, "nginx.conf");
	auto_free char *commands = config_state_path(config, "commands.json");
	auto_free char *key = config_state_path(config, "standin.key");
	auto_free char *wal = xprintf("%s-wal", config->database);
	auto_free char *shm = xprintf("%s-shm", config->database);
	auto_free char *turn = xprintf("%s-turn", config->database);
	const char *const secrets[] = { config->api_tokens_file,
		config->nodes_key_file, config->librechat_keys_file };
	const struct {
		const char *path;
		uid_t uid;
		gid_t gid;
		mode_t mode;
	} files[] = {
		{ wake, run->uids[ACCOUNT_WORKER], db, 0660 },
		{ conf, 0, run->gids[ACCOUNT_NGINX], 0640 },
		{ commands, 0, run->gids[ACCOUNT_STANDIN], 0640 },
		{ key, run->uids[ACCOUNT_STANDIN], run->gids[ACCOUNT_STANDIN],
		    0600 },
		{ config->database, 0, db, 0660 },
		{ wal, 0, db, 0660 },
		{ shm, 0, db, 0660 },
		{ turn, 0, db, 0660 },
	};

	if (mkfifo(wake, 0660) != 0)
		return err_system(err, "make %s", wake);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (*files[i].path != '\0' &&
		    give_file(files[i].path, files[i].uid, files[i].gid,
			files[i].mode, err) != 0)
			return -1;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		const gid_t api = run->gids[ACCOUNT_API];
		int readable = *secrets[i] == '\0' ?
		    1 :
		    is_readable(secrets[i], api, err);

		if (readable < 0 ||
		    (readable == 0 &&
			give_file(secrets[i], 0, api, 0640, err) != 0))
			return -1;
	}
	return 0;
}
