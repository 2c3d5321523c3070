/* SPDX-License-Identifier: MIT */
/*
 * The files of the host that a container mounts.  Each container has files of
 * its own, and none are shared.
 */
#include "broker/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "broker/host.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DATABASE_MAX 1024
/* Source of the cell's program for this life of the broker. */
#define PROGRAM "program"

/* Uid of a process in a jail, as it sees itself:
 * sandbox/cell/supervisor/shared.h. */
#define JAILED 65532

/* ---- making ---- */

/* Make a folder that all may enter, or a file that all may read, whatever the
 * umask is.  Returns its descriptor. */
static int
folder_make_entry(int at, const char *name, bool folder, struct err *err)
{
	auto_close int fd = -1;

	if (!folder)
		fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    0644);
	else if (mkdirat(at, name, 0755) == 0)
		fd = openat(at, name, FOLDER);
	if (fd < 0 || fchmod(fd, folder ? 0755 : 0644) != 0)
		return err_system(err, "make %s", name);
	return steal_fd(&fd);
}

/* Copy a regular file of the program; anything else is left out. */
static int
copy_file(int from_folder, int to_folder, const char *name, struct err *err)
{
	auto_close int from = openat(from_folder, name,
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int to = -1;
	struct stat st;
	off_t left;
	ssize_t sent = 1;

	if (from < 0 || fstat(from, &st) != 0)
		return err_system(err, "open %s", name);
	if (!S_ISREG(st.st_mode))
		return 0;
	to = folder_make_entry(to_folder, name, false, err);
	if (to < 0)
		return -1;
	for (left = st.st_size; left > 0 && sent > 0; left -= sent)
		sent = sendfile(to, from, NULL, (size_t)left);
	if (sent < 0)
		return err_system(err, "copy %s", name);
	return left == 0 ? 0 : err_set(err, ERR_SYSTEM, "%s is cut", name);
}

/* Copy the cell's program: its Python files and its library. */
static int
copy_program(const char *parent, const char *name, int to, struct err *err)
{
	auto_free char *program = xprintf("%s/%s", parent, name);
	auto_dir DIR *dir = opendir(program);

	if (dir == NULL)
		return err_system(err, "list %s", program);
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		const char *dot = strrchr(e->d_name, '.');

		if (dot != NULL &&
		    (strcmp(dot, ".py") == 0 || strcmp(dot, ".so") == 0) &&
		    copy_file(dirfd(dir), to, e->d_name, err) != 0)
			return -1;
	}
	return 0;
}

static int
folder_write_file(int at, const char *name, const struct buf *text,
    struct err *err)
{
	auto_close int fd = folder_make_entry(at, name, false, err);

	if (fd < 0)
		return -1;
	return fd_write_all(fd, text->data, text->len, err);
}

/*
 * The cell's user has a name and a home in any image, and two uids: the host's,
 * and the one that a run in a jail sees.
 */
static int
write_databases(int at, uint32_t uid, struct err *err)
{
	const uint32_t ids[] = { uid, JAILED };
	auto_buf struct buf users = BUF_INIT(DATABASE_MAX);
	auto_buf struct buf groups = BUF_INIT(DATABASE_MAX);

	buf_adds(&users, "root:x:0:0:root:/root:/sbin/nologin\n");
	buf_adds(&groups, "root:x:0:\ntty:x:5:\n");
	for (size_t i = uid == JAILED ? 1 : 0; i < 2; i++) {
		buf_addf(&users,
		    "sandbox:x:%" PRIu32 ":%" PRIu32
		    ":sandbox:/workspace:/bin/sh\n",
		    ids[i], ids[i]);
		buf_addf(&groups, "sandbox:x:%" PRIu32 ":\n", ids[i]);
	}
	buf_adds(&users,
	    "nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n");
	buf_adds(&groups, "nogroup:x:65534:\n");
	if (folder_write_file(at, "passwd", &users, err) != 0)
		return -1;
	return folder_write_file(at, "group", &groups, err);
}

int
folder_make(const struct host *host, const char *name, uint32_t uid,
    struct err *err)
{
	auto_close int all = open(host->cells_dir, FOLDER);
	auto_close int own = -1;
	auto_close int socket = -1;
	auto_close int copy = -1;

	if (all < 0)
		return err_system(err, "open %s", host->cells_dir);
	own = folder_make_entry(all, name, true, err);
	if (own < 0)
		return -1;
	socket = folder_make_entry(own, "socket", true, err);
	if (socket >= 0 && uid == 0)
		return 0;
	if (socket >= 0)
		copy = folder_make_entry(own, "cell", true, err);
	if (copy >= 0 &&
	    copy_program(host->cells_dir, PROGRAM, copy, err) == 0 &&
	    write_databases(own, uid, err) == 0)
		return 0;
	folder_remove(host->cells_dir, name, false);
	return err_wrap(err, "%s/%s", host->cells_dir, name);
}

/* ---- removing ---- */

int
folder_delete(int at, const char *name, int depth, struct err *err)
{
	int fd = openat(at, name, FOLDER);
	auto_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	/* A folder that is gone counts as removed. */
	if (fd < 0)
		return errno == ENOENT ? 0 : err_system(err, "open %s", name);
	if (dir == NULL) {
		(void)close(fd);
		return err_system(err, "list %s", name);
	}
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0 ||
		    unlinkat(fd, e->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR || depth == 0)
			return err_system(err, "remove %s", e->d_name);
		if (folder_delete(fd, e->d_name, depth - 1, err) != 0)
			return -1;
	}
	if (unlinkat(at, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
		return err_system(err, "remove %s", name);
	return 0;
}

void
folder_remove(const char *cells, const char *name, bool socket_only)
{
	auto_free char *path = xprintf("%s/%s%s", cells, name,
	    socket_only ? "/socket" : "");
	struct err err;

	(void)folder_delete(AT_FDCWD, path, socket_only ? 0 : 1, &err);
}

/* After the sweep no container uses the folders of an earlier life. */
int
folder_sweep(const char *cells, const char *library, struct err *err)
{
	auto_dir DIR *dir = NULL;
	auto_close int program = -1;
	struct err left;

	if (fd_make_dirs(cells, 0700, err) != 0)
		return -1;
	dir = opendir(cells);
	if (dir == NULL)
		return err_system(err, "list %s", cells);
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (strncmp(e->d_name, "il-", 3) == 0)
			(void)folder_delete(dirfd(dir), e->d_name, 1, &left);
	}
	if (folder_delete(dirfd(dir), PROGRAM, 0, err) != 0)
		return -1;
	program = folder_make_entry(dirfd(dir), PROGRAM, true, err);
	return program < 0 ? -1 : copy_program(library, "cell", program, err);
}

void
folder_close(const char *cells)
{
	folder_remove(cells, PROGRAM, false);
	(void)rmdir(cells);
}
