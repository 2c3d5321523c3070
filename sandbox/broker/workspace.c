/* SPDX-License-Identifier: MIT */
/*
 * All paths under IL_BASE_DIR are made here.  Names are checked, links are
 * never followed, and changes are synced before a client is answered.  For a
 * new workspace, mkfs.ext4 and debugfs fill two sparse files in a draft folder,
 * one after the other, in the loop.  The rename at the end makes the sandbox.
 */
#include "broker/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/file.h"

/* Name of the packages before each minor version had its own volume. */
#define OLD_PACKAGES_VOLUME "packages.ext4"
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
	    strspn(id, "0123456789abcdef") == SANDBOX_ID_LEN &&
	    strcmp(id, API_PACKAGES_ID) != 0;
}

/* Set a name that no other folder has or had: one sandbox may have several
 * drafts at a time. */
static void
unique_name(char name[64], const char *prefix)
{
	static unsigned int serial;

	(void)snprintf(name, 64, "%s%lld-%d-%u", prefix,
	    (long long)clock_wall_ms(), (int)getpid(), ++serial);
}

int
workspace_open_folder(int at, const char *name)
{
	return openat(at, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void
workspace_packages_name(const char *interpreter, char name[VOLUME_NAME_MAX])
{
	char minor[IMAGES_NAME_MAX + 1];

	images_minor(interpreter, minor);
	(void)snprintf(name, VOLUME_NAME_MAX, PACKAGES_VOLUME "-%s.ext4",
	    minor);
}

/* ---- opening ---- */

DIR *
workspace_list(int at, const char *name)
{
	int fd = workspace_open_folder(at, name);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL && fd >= 0)
		(void)close(fd);
	return dir;
}

/* A leftover that cannot be removed costs space, but does not stop the start.
 */
static int
sweep_leftovers(int base, struct err *err)
{
	auto_dir DIR *dir = workspace_list(base, ".");
	struct err left;

	if (dir == NULL)
		return err_system(err, "list the workspaces");
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (fnmatch(DRAFT_PREFIX "*", e->d_name, 0) != 0 &&
		    fnmatch(RETIRED_PREFIX "*", e->d_name, 0) != 0)
			continue;
		log_info("removing the leftover %s", e->d_name);
		if (folder_delete(base, e->d_name, 0, &left) != 0)
			log_warn("%s stays: %s", e->d_name, left.text);
	}
	return 0;
}

/* A crash leaves each volume under its old name or its new one. */
static void
name_old_packages(int base, const char *interpreter)
{
	auto_dir DIR *list = workspace_list(base, ".");
	char name[VOLUME_NAME_MAX];
	const char *id;

	workspace_packages_name(interpreter, name);
	while (list != NULL && (id = workspace_next(list)) != NULL) {
		auto_close int folder = workspace_open_folder(base, id);

		if (folder >= 0 &&
		    renameat2(folder, OLD_PACKAGES_VOLUME, folder, name,
			RENAME_NOREPLACE) != 0 &&
		    errno != ENOENT)
			log_warn("%s/" OLD_PACKAGES_VOLUME " stays: %s", id,
			    strerror(errno));
	}
}

int
workspace_base_open(const char *path, const char *interpreter, struct err *err)
{
	auto_close int base = -1;

	if (fd_make_dirs(path, 0700, err) != 0)
		return -1;
	base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return err_system(err, "open %s", path);
	if (sweep_leftovers(base, err) != 0)
		return err_wrap(err, "%s", path);
	name_old_packages(base, interpreter);
	return steal_fd(&base);
}

/* A volume must be a regular file; a link or a device in its place is refused.
 */
int
workspace_volume_open(int base, const char *id, const char *volume,
    struct err *err)
{
	auto_close int folder = -1;
	auto_close int fd = -1;
	struct stat st;

	if (!workspace_id_valid(id) && strcmp(id, API_PACKAGES_ID) != 0)
		return err_set(err, ERR_INPUT, "not a sandbox id");
	folder = workspace_open_folder(base, id);
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

bool
workspace_has(int base, const char *id, const char *volume)
{
	auto_close int folder = workspace_open_folder(base, id);

	return folder >= 0 &&
	    faccessat(folder, volume, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool
workspace_volume_damaged(int volume_fd)
{
	unsigned char state[2] = { 0, 0 };

	return pread(volume_fd, state, sizeof(state), STATE_AT) ==
	    (ssize_t)sizeof(state) &&
	    (state[0] & STATE_ERRORS) != 0;
}

/* ---- removing ---- */

/* After the rename no client finds the sandbox. */
int
workspace_retire(int base, const char *id, char name[64], struct err *err)
{
	unique_name(name, RETIRED_PREFIX);
	if (renameat2(base, id, base, name, RENAME_NOREPLACE) != 0)
		return errno == ENOENT ? 1 : err_system(err, "retire %s", id);
	/* The sandbox is retired: the request goes on. */
	if (fsync(base) != 0)
		log_err("sync after %s: %s", name, strerror(errno));
	return 0;
}

/* ---- lists ---- */

const char *
workspace_next(DIR *dir)
{
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (workspace_id_valid(e->d_name))
			return e->d_name;
	}
	return NULL;
}

const char *
workspace_next_volume(DIR *dir)
{
	struct dirent *e = NULL;

	while (dir != NULL && (e = readdir(dir)) != NULL &&
	    strstr(e->d_name, ".ext4") == NULL)
		;
	return e != NULL ? e->d_name : NULL;
}

int64_t
workspace_count(int base)
{
	auto_dir DIR *dir = workspace_list(base, ".");
	int64_t count = 0;

	if (dir == NULL)
		return -1;
	while (workspace_next(dir) != NULL)
		count++;
	return count;
}

/* ---- creation ---- */

#define BLOCK 4096
#define INODE 256
#define JOURNAL_MIB 4
#define TOOL_MS 60000

/* lost+found would be a folder of root's among the user's files; e2fsck makes
 * it again when it needs it.  The mount point of the packages is part of the
 * volume, so the engine need not write into a workspace. */
#define WORKSPACE_SCRIPT \
	"rmdir lost+found\n" \
	"mkdir .site-packages\n" \
	"set_inode_field .site-packages uid %" PRIu32 "\n" \
	"set_inode_field .site-packages gid %" PRIu32 "\n"
#define PACKAGES_SCRIPT "rmdir lost+found\n"

/* ext4 reserves ten inodes, and the mount point needs one. */
int64_t
volume_inodes(const struct volume_size *size)
{
	return size->files + 11;
}

/*
 * The size includes ext4's own data: the inode tables, the journal, the bitmaps
 * and backup superblocks of each group of 128 MiB, a few folders, and the
 * blocks that the kernel reserves (2 %, 4,096 blocks at most).
 */
int64_t
volume_total_bytes(const struct volume_size *size)
{
	int64_t total = size->bytes + volume_inodes(size) * INODE +
	    ((int64_t)JOURNAL_MIB << 20) + (INT64_C(512) << 10);
	int64_t reserve;

	total += (total >> 27) * (INT64_C(96) << 10);
	reserve = total / 49;
	if (reserve > INT64_C(4096) * BLOCK)
		reserve = INT64_C(4096) * BLOCK;
	total += reserve;
	return (total + BLOCK - 1) / BLOCK * BLOCK;
}

/* Remove the draft. */
static void
creation_drop(struct creation *c)
{
	struct err err;

	if (*c->draft != '\0' &&
	    folder_delete(c->host->base, c->draft, 0, &err) != 0)
		log_warn("%s sandbox=%s", err.text, c->id);
	c->draft[0] = '\0';
}

static void
creation_fail(struct creation *c, const struct err *failure)
{
	creation_drop(c);
	c->done(c->arg, failure);
}

static void creation_step(struct creation *c);

/* A tool has ended: begin the next step. */
static void
creation_on_task(void *arg, const struct process_result *result)
{
	struct creation *c = arg;
	struct err err;

	if (process_succeeded(result)) {
		c->step++;
		creation_step(c);
		return;
	}
	(void)err_set(&err, ERR_SYSTEM, "make a file system: %s",
	    process_describe(result).text);
	creation_fail(c, &err);
}

/* The program of the next step.  Steps 0 and 1 make and fill the workspace's
 * volume, 2 and 3 the packages'; a copy of a volume is not filled, and a sparse
 * file stays sparse.  mkfs writes no tables and no journal: a new volume takes
 * 4 MiB of disk.  debugfs reads commands on its standard input. */
static int
creation_argv(struct creation *c, struct argv *argv, struct err *err)
{
	int which = c->step / 2;
	const char *base = c->host->config->base_dir;
	auto_free char *path = xprintf("%s/%s", c->draft,
	    which == 0 ? WORKSPACE_VOLUME : c->packages);
	auto_close int fd = -1;

	if (c->copied[0] != '\0') {
		c->step = 3;
		argv_init(argv,
		    ARGV_WORDS("cp", "--sparse=always", "--reflink=auto",
			"--"));
		argv_addf(argv, "%s/%s/%s", base, c->id, c->copied);
	} else if (c->step % 2 != 0) {
		argv_init(argv, ARGV_WORDS("debugfs", "-w", "-f", "-"));
		if (which == 0)
			(void)snprintf(c->script, sizeof(c->script),
			    WORKSPACE_SCRIPT, c->uid, c->uid);
		else
			(void)snprintf(c->script, sizeof(c->script),
			    PACKAGES_SCRIPT);
		argv->input = c->script;
	} else {
		fd = openat(c->host->base, path,
		    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 ||
		    ftruncate(fd, volume_total_bytes(&c->sizes[which])) != 0)
			return err_system(err, "make %s", path);
		argv_init(argv,
		    ARGV_WORDS("mkfs.ext4", "-q", "-F", "-t", "ext4", "-b",
			"4096", "-I", "256", "-m", "0", "-e", "remount-ro",
			"-J", "size=4", "-O", "^resize_inode"));
		argv_addf(argv,
		    "-Eroot_owner=%" PRIu32 ":%" PRIu32
		    ",lazy_itable_init=1,nodiscard",
		    c->uid, c->uid);
		argv_addf(argv, "-N%" PRId64, volume_inodes(&c->sizes[which]));
	}
	argv_addf(argv, "%s/%s", base, path);
	return 0;
}

/* Rename the draft to the sandbox, or move the packages' volume from the draft
 * into the sandbox's folder.  The tools have synced the volumes; the folder and
 * its new name are synced here. */
static int
creation_publish(struct creation *c, struct err *err)
{
	int base = c->host->base;
	const char *name = c->only_packages ? c->packages : c->id;
	auto_close int draft = workspace_open_folder(base, c->draft);
	auto_close int folder = workspace_open_folder(base,
	    c->only_packages ? c->id : ".");

	if (draft < 0 || folder < 0 || fsync(draft) != 0)
		return err_system(err, "keep the workspace %s", c->id);
	if (renameat2(c->only_packages ? draft : base,
		c->only_packages ? name : c->draft, folder, name,
		RENAME_NOREPLACE) != 0) {
		if (errno == EEXIST)
			return err_set(err, ERR_CONFLICT, "%s exists", name);
		return err_system(err, "name %s of %s", name, c->id);
	}
	if (fsync(folder) != 0)
		return err_system(err, "keep %s of %s", name, c->id);
	if (c->only_packages)
		creation_drop(c);
	return 0;
}

static void
creation_step(struct creation *c)
{
	auto_argv struct argv argv = { .count = 0 };
	struct err err;

	if (c->step < 4 && creation_argv(c, &argv, &err) == 0)
		subprocess_start(&c->process, c->host->loop, &argv, TOOL_MS,
		    creation_on_task, c);
	else if (c->step < 4 || creation_publish(c, &err) != 0)
		creation_fail(c, &err);
	else
		c->done(c->arg, NULL);
}

void
creation_start(struct creation *c, struct host *host,
    void (*done)(void *arg, const struct err *failure), void *arg)
{
	struct err err;

	c->host = host;
	c->done = done;
	c->arg = arg;
	c->step = c->only_packages ? 2 : 0;
	unique_name(c->draft, DRAFT_PREFIX);
	if (mkdirat(host->base, c->draft, 0700) == 0) {
		creation_step(c);
		return;
	}
	(void)err_system(&err, "make a workspace");
	c->draft[0] = '\0';
	creation_fail(c, &err);
}

void
creation_cancel(struct creation *c)
{
	subprocess_cancel(&c->process);
	creation_drop(c);
}

/* ---- folders of containers ---- */

#define PROGRAM_FILE_MAX (16 << 20)
/* Source of the cell's program for this life of the broker. */
#define PROGRAM "program"

/* Uid of a process in a jail, as it sees itself:
 * sandbox/cell/supervisor/shared.h. */
#define JAILED "65532"

/* ---- folders of containers: making ---- */

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
		fd = workspace_open_folder(at, name);
	if (fd < 0 || fchmod(fd, folder ? 0755 : 0644) != 0)
		return err_system(err, "make %s", name);
	return steal_fd(&fd);
}

static int
folder_write_file(int at, const char *name, const char *text, size_t len,
    struct err *err)
{
	auto_close int fd = folder_make_entry(at, name, false, err);

	return fd < 0 ? -1 : fd_write_all(fd, text, len, err);
}

/* Copy the cell's program: its Python files and its library.  Anything but a
 * regular file is left out. */
static int
copy_program(const char *parent, const char *name, int to, struct err *err)
{
	auto_free char *program = xprintf("%s/%s", parent, name);
	auto_dir DIR *dir = opendir(program);

	if (dir == NULL)
		return err_system(err, "list %s", program);
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		auto_buf struct buf bytes = BUF_INIT(PROGRAM_FILE_MAX);
		auto_free char *path = xprintf("%s/%s", program, e->d_name);
		struct stat st;

		if ((fnmatch("*.py", path, 0) != 0 &&
			fnmatch("*.so", path, 0) != 0) ||
		    lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		if (file_read(path, &bytes, err) != 0 ||
		    folder_write_file(to, e->d_name, buf_str(&bytes), bytes.len,
			err) != 0)
			return -1;
	}
	return 0;
}

/*
 * The cell's user has a name and a home in any image, and two uids: the host's,
 * and the one that a run in a jail sees.
 */
static int
write_databases(int at, uint32_t uid, struct err *err)
{
	auto_free char *users =
	    xprintf("root:x:0:0:root:/root:/sbin/nologin\n"
		    "sandbox:x:%" PRIu32 ":%" PRIu32
		    ":sandbox:/workspace:/bin/sh\n"
		    "sandbox:x:" JAILED ":" JAILED
		    ":sandbox:/workspace:/bin/sh\n"
		    "nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n",
		uid, uid);
	auto_free char *groups = xprintf("root:x:0:\ntty:x:5:\n"
					 "sandbox:x:%" PRIu32 ":\n"
					 "sandbox:x:" JAILED ":\n"
					 "nogroup:x:65534:\n",
	    uid);

	if (folder_write_file(at, "passwd", users, strlen(users), err) != 0)
		return -1;
	return folder_write_file(at, "group", groups, strlen(groups), err);
}

int
folder_make(const struct host *host, const char *name, uint32_t uid,
    struct err *err)
{
	auto_free char *path = xprintf("%s/%s", host->cells_dir, name);
	auto_close int own = folder_make_entry(AT_FDCWD, path, true, err);
	auto_close int socket = -1;
	auto_close int copy = -1;

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
	return err_wrap(err, "%s", path);
}

/* ---- folders of containers: removing ---- */

int
folder_delete(int at, const char *name, int depth, struct err *err)
{
	auto_dir DIR *dir = workspace_list(at, name);
	int fd = dir != NULL ? dirfd(dir) : -1;

	/* A folder that is gone counts as removed. */
	if (dir == NULL)
		return errno == ENOENT ? 0 : err_system(err, "open %s", name);
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
