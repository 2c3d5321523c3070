/* SPDX-License-Identifier: MIT */
/*
 * All paths under IL_BASE_DIR are made here. Names are checked, links are
 * never followed, and what has to survive a power cut is synced before it is
 * answered for.
 */
#include "workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "folder.h"

#define DRAFT_PREFIX ".new-"
#define RETIRED_PREFIX ".old-"

/* In the superblock of ext4, which is 1,024 bytes into the volume: s_state, and
 * its bit "errors detected". */
#define STATE_AT (1024 + 0x3a)
#define STATE_ERRORS 0x02

bool
workspace_id_valid(const char *id)
{
	return strlen(id) == SANDBOX_ID_LEN &&
	    strspn(id, "0123456789abcdef") == SANDBOX_ID_LEN;
}

/* A name that no other folder has or had: several of them may be under way for
 * one sandbox. */
static void
unique_name(char name[64], const char *prefix)
{
	static unsigned int serial;

	(void)snprintf(name, 64, "%s%lld-%d-%u", prefix,
	    (long long)clock_wall_ms(), (int)getpid(), ++serial);
}

static int
open_folder(int base, const char *name)
{
	return openat(base, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- opening ---- */

DIR *
workspace_list(int base)
{
	int fd = open_folder(base, ".");
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL && fd >= 0)
		(void)close(fd);
	return dir;
}

/* One that cannot be removed costs space, and is no reason to serve nobody. */
static int
sweep_leftovers(int base, struct err *err)
{
	DIR *dir = workspace_list(base);
	struct err left;

	if (dir == NULL)
		return err_system(err, "list the workspaces");
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (strncmp(e->d_name, DRAFT_PREFIX, strlen(DRAFT_PREFIX)) !=
			0 &&
		    strncmp(e->d_name, RETIRED_PREFIX,
			strlen(RETIRED_PREFIX)) != 0)
			continue;
		log_info("removing the leftover %s", e->d_name);
		if (folder_delete(base, e->d_name, 0, &left) != 0)
			log_warn("%s stays: %s", e->d_name, left.text);
	}
	(void)closedir(dir);
	return 0;
}

/* The folder for all, without leftovers. */
int
workspace_base_open(const char *path, struct err *err)
{
	auto_close int base = -1;

	if (fd_make_dirs(path, 0700, err) != 0)
		return -1;
	base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return err_system(err, "open %s", path);
	if (sweep_leftovers(base, err) != 0)
		return err_wrap(err, "%s", path);
	return steal_fd(&base);
}

/* A volume must be a regular file: we made it, and a link or a device in its
 * place is refused. */
int
workspace_volume_open(int base, const char *id, const char *volume,
    struct err *err)
{
	auto_close int folder = -1;
	auto_close int fd = -1;
	struct stat st;

	if (!workspace_id_valid(id))
		return err_set(err, ERR_INPUT, "not a sandbox id");
	folder = open_folder(base, id);
	if (folder >= 0)
		fd = openat(folder, volume,
		    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "no workspace %s", id);
	if (fd < 0)
		return err_system(err, "open %s/%s", id, volume);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFLICT, "%s/%s is no file", id,
		    volume);
	return steal_fd(&fd);
}

/* Both volumes are there. */
bool
workspace_exists(int base, const char *id)
{
	auto_close int folder = open_folder(base, id);

	return folder >= 0 &&
	    faccessat(folder, WORKSPACE_VOLUME, F_OK, AT_SYMLINK_NOFOLLOW) ==
	    0 &&
	    faccessat(folder, PACKAGES_VOLUME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool
workspace_volume_damaged(int volume_fd)
{
	unsigned char state[2] = { 0, 0 };

	return pread(volume_fd, state, sizeof(state), STATE_AT) ==
	    (ssize_t)sizeof(state) &&
	    (state[0] & STATE_ERRORS) != 0;
}

/* ---- making and removing ---- */

int
workspace_draft_make(int base, char name[64], struct err *err)
{
	unique_name(name, DRAFT_PREFIX);
	if (mkdirat(base, name, 0700) != 0)
		return err_system(err, "make a workspace");
	return 0;
}

/* The volumes are synced by the tools that wrote them; the folder and its new
 * name are synced here. */
int
workspace_draft_publish(int base, const char *draft, const char *id,
    struct err *err)
{
	auto_close int folder = open_folder(base, draft);

	if (folder < 0 || fsync(folder) != 0)
		return err_system(err, "keep the workspace %s", id);
	if (renameat2(base, draft, base, id, RENAME_NOREPLACE) != 0) {
		if (errno == EEXIST)
			return err_set(err, ERR_CONFLICT, "%s exists", id);
		return err_system(err, "name the workspace %s", id);
	}
	if (fsync(base) != 0)
		return err_system(err, "keep the workspace %s", id);
	return 0;
}

/* From here on nobody finds it. */
int
workspace_retire(int base, const char *id, char name[64], struct err *err)
{
	unique_name(name, RETIRED_PREFIX);
	if (renameat2(base, id, base, name, RENAME_NOREPLACE) != 0)
		return errno == ENOENT ? 1 : err_system(err, "retire %s", id);
	if (fsync(base) != 0)
		return err_system(err, "retire %s", id);
	return 0;
}

/* ---- all of them ---- */

const char *
workspace_next(DIR *dir)
{
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (workspace_id_valid(e->d_name))
			return e->d_name;
	}
	return NULL;
}

int64_t
workspace_count(int base)
{
	DIR *dir = workspace_list(base);
	int64_t count = 0;

	if (dir == NULL)
		return -1;
	while (workspace_next(dir) != NULL)
		count++;
	(void)closedir(dir);
	return count;
}
