/* SPDX-License-Identifier: MIT */
/*
 * A folder: each object is a file, written under another name first.  What was
 * put is flushed once, by store_wait(), before the manifest that names it.
 *
 * One that is not mounted is empty, and all sandboxes would seem to have no
 * snapshot.  So the first save marks it, and every host notes that it has seen
 * the mark: from then on a folder without it is an error.
 */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/file.h"
#include "../base/log.h"
#include "../protocol/snapshot.h"

#define FILE_MODE 0600
#define FOLDER_MODE 0700
/* Of one process for one sandbox, or one file of the HTTP APIs, beside what it
 * becomes; a killed one's is written over. */
#define DRAFT "draft"
#define DRAFT_TRIES 3
/* In IL_BASE_DIR, as IL_STATE_DIR is emptied by a boot: the folder's path. */
#define NOTE ".snapshots"

struct folder {
	struct store store;
	int fd;
	char *path;
	char *note;
	bool written;
	bool times; /* are wanted of a list */
};

/* ---- the mark ---- */

static bool
is_noted(const struct folder *f)
{
	auto_buf struct buf noted = BUF_INIT(8192);
	struct err err;

	return file_read(f->note, &noted, &err) == 0 &&
	    strcmp(buf_str(&noted), f->path) == 0;
}

/* A full disk here is no reason not to save; the next one tries again.  Two may
 * do it at one time. */
static void
note(const struct folder *f)
{
	struct err err;

	if (!is_noted(f) &&
	    file_write(f->note, f->path, strlen(f->path), true, &err) != 0 &&
	    !is_noted(f))
		log_warn("%s", err.text);
}

static int
mark(struct folder *f, struct err *err)
{
	auto_close int fd = openat(f->fd, SNAPSHOT_MARK,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);

	if (fd < 0 || fsync(fd) != 0 || fsync(f->fd) != 0)
		return err_system(err, "mark %s", f->path);
	f->store.used = true;
	note(f);
	return 0;
}

/* Is it the folder that it was? */
static int
look(struct folder *f, struct err *err)
{
	f->store.used = faccessat(f->fd, SNAPSHOT_MARK, F_OK,
			    AT_SYMLINK_NOFOLLOW) == 0;
	if (f->store.used)
		note(f);
	else if (errno != ENOENT)
		return err_system(err, "IL_SNAPSHOTS: %s/" SNAPSHOT_MARK,
		    f->path);
	else if (is_noted(f))
		return err_set(err, ERR_UNAVAILABLE,
		    "IL_SNAPSHOTS: %s has lost its " SNAPSHOT_MARK
		    ": is it mounted? (if it is to be empty: remove %s)",
		    f->path, f->note);
	return 0;
}

/* ---- objects ---- */

/* The folders above it. */
static int
make_parents(const struct folder *f, const char *name, struct err *err)
{
	char part[STORE_NAME_MAX];

	for (const char *at = strchr(name, '/'); at != NULL;
	     at = strchr(at + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(at - name),
		    name);
		if (mkdirat(f->fd, part, FOLDER_MODE) != 0 && errno != EEXIST)
			return err_system(err, "make %s/%s", f->path, part);
	}
	return 0;
}

/* Where files of the HTTP APIs are, another host may be about to remove the
 * folders, as they are empty. */
static int
open_draft(const struct folder *f, const char *name, const char *draft,
    struct err *err)
{
	int fd = -1;

	for (int tries = 0; tries < DRAFT_TRIES; tries++) {
		if (make_parents(f, name, err) != 0)
			return -1;
		fd = openat(f->fd, draft,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    FILE_MODE);
		if (fd >= 0 || errno != ENOENT)
			break;
	}
	return fd >= 0 ? fd : err_system(err, "write %s/%s", f->path, draft);
}

static int
folder_put(struct store *s, const char *name, const void *data, size_t len,
    struct err *err)
{
	struct folder *f = (struct folder *)s;
	const char *slash = strncmp(name, STORE_FILES "/",
				strlen(STORE_FILES "/")) == 0 ?
	    strrchr(name, '/') :
	    strchr(name, '/');
	const char *last = strrchr(name, '/');
	char draft[STORE_NAME_MAX];
	auto_close int fd = -1;

	(void)snprintf(draft, sizeof(draft), "%.*s/" DRAFT, (int)(slash - name),
	    name);
	if (!s->used && mark(f, err) != 0)
		return -1;
	fd = open_draft(f, name, draft, err);
	f->written = true;
	if (fd < 0)
		return -1;
	if (fd_write_all(fd, data, len, err) != 0)
		return err_wrap(err, "write %s/%s", f->path, draft);
	/* the last whole one is replaced by a whole one */
	if ((strcmp(last, "/manifest") == 0 || strcmp(last, "/head") == 0) &&
	    fsync(fd) != 0)
		return err_system(err, "keep %s/%s", f->path, draft);
	if (renameat(f->fd, draft, f->fd, name) != 0)
		return err_system(err, "write %s/%s", f->path, name);
	return 0;
}

static int
folder_fetch(struct store *s, const char *name, size_t most, store_fn done,
    void *arg, struct err *err)
{
	const struct folder *f = (struct folder *)s;
	auto_close int fd = openat(f->fd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_free char *data = NULL;
	struct stat st;
	size_t len = 0;
	ssize_t got;

	if (fd < 0 && errno == ENOENT)
		return done(arg, NULL, 0, err);
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "read %s/%s", f->path, name);
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (size_t)st.st_size > most)
		return err_set(err, ERR_INPUT, "%s is too long", name);
	data = xmalloc((size_t)st.st_size + 1);
	/* an error in the middle of it gives a part of it first */
	while ((got = TEMP_FAILURE_RETRY(pread(fd, data + len,
		    (size_t)st.st_size + 1 - len, (off_t)len))) > 0)
		len += (size_t)got;
	if (got < 0)
		return err_system(err, "read %s/%s", f->path, name);
	return done(arg, data, len, err);
}

/* And the folders above it that are empty now. */
static int
folder_remove(struct store *s, const char *name, struct err *err)
{
	const struct folder *f = (struct folder *)s;
	char part[STORE_NAME_MAX];
	char *slash;

	if (unlinkat(f->fd, name, 0) != 0 && errno != ENOENT)
		return err_system(err, "remove %s/%s", f->path, name);
	(void)snprintf(part, sizeof(part), "%s", name);
	while ((slash = strrchr(part, '/')) != NULL) {
		*slash = '\0';
		if (unlinkat(f->fd, part, AT_REMOVEDIR) != 0)
			break;
	}
	return 0;
}

/* What one of a list is.  Not every file system says it; 1: it is gone. */
static int
look_in(const struct folder *f, int fd, const struct dirent *e, struct stat *st)
{
	*st = (struct stat){ .st_mode = (mode_t)DTTOIF(e->d_type) };
	if ((e->d_type != DT_UNKNOWN && !f->times) ||
	    fstatat(fd, e->d_name, st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return f->times && errno == ENOENT ? 1 : -1;
}

/* The objects in one folder, the folders in it, and so on: blocks are two
 * deep.  What a killed one has left counts; a folder that it had only begun
 * goes at once. */
static int
list_below(const struct folder *f, const char *path, int depth,
    store_list_fn fn, void *arg, struct err *err)
{
	int fd = openat(f->fd, path,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (dir == NULL)
		return err_system(err, "list %s/%s", f->path, path);
	while ((e = readdir(dir)) != NULL) {
		char name[STORE_NAME_MAX];
		struct stat st;
		int gone;

		if (e->d_name[0] == '.' ||
		    (size_t)snprintf(name, sizeof(name), "%s/%s", path,
			e->d_name) >= sizeof(name))
			continue;
		gone = look_in(f, fd, e, &st);
		if (gone < 0)
			return err_system(err, "list %s/%s", f->path, name);
		if (gone > 0)
			continue;
		if (!S_ISDIR(st.st_mode))
			fn(arg, name, st.st_mtim.tv_sec);
		else if (depth > 0 &&
		    list_below(f, name, depth - 1, fn, arg, err) != 0)
			return -1;
	}
	/* without an object in it nothing would ever remove it */
	(void)unlinkat(f->fd, path, AT_REMOVEDIR);
	return 0;
}

static int
folder_list(struct store *s, const char *below, store_list_fn fn, void *arg,
    struct err *err)
{
	struct folder *f = (struct folder *)s;

	f->times = strcmp(below, STORE_FILES) == 0;
	return list_below(f, below, 2, fn, arg, err);
}

static int
folder_wait(struct store *s, struct err *err)
{
	struct folder *f = (struct folder *)s;

	if (f->written && syncfs(f->fd) != 0)
		return err_system(err, "keep what is in %s", f->path);
	f->written = false;
	return 0;
}

static void
folder_close(struct store *s)
{
	struct folder *f = (struct folder *)s;

	cleanup_close(&f->fd);
	free(f->path);
	free(f->note);
	free(f);
}

/* It is the operator's to make: one that is not there may not be mounted. */
struct store *
folder_open(const struct config *config, struct err *err)
{
	const char *path = config->snapshots;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct folder *f;

	if (fd < 0) {
		(void)err_system(err, "IL_SNAPSHOTS: %s", path);
		return NULL;
	}
	f = xcalloc(1, sizeof(*f));
	*f = (struct folder){ .store = { false, folder_put, folder_fetch,
				  folder_remove, folder_list, folder_wait,
				  folder_close },
		.fd = fd,
		.path = xstrdup(path),
		.note = xprintf("%s/" NOTE, config->base_dir) };
	if (look(f, err) == 0)
		return &f->store;
	folder_close(&f->store);
	return NULL;
}
