/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/look.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cell/supervisor/base.h"

#include "protocol/frame_limits.h"

#define SECOND_NS 1000000000
#define RECORD_MAX (2 + LIMIT_PATH + 4 * 8)

bool
look_sweep(const char *path)
{
	struct base_names names = { .folder = openat(AT_FDCWD, path,
					LOOK_FOLDER) };
	const char *name;
	bool empty = true;

	if (names.folder < 0)
		return errno == ENOENT;
	while ((name = base_next_name(&names)) != NULL)
		empty = unlinkat(names.folder, name, 0) == 0 && empty;
	(void)close(names.folder);
	return empty && !names.failed;
}

bool
look_finds(const char *path, const char *beginning)
{
	struct base_names names = { .folder = openat(AT_FDCWD, path,
					LOOK_FOLDER) };
	const char *name;
	size_t len = strlen(beginning);

	if (names.folder < 0)
		return false;
	/* a name has its NUL within the record, which is longer than that */
	do
		name = base_next_name(&names);
	while (name != NULL && strncmp(name, beginning, len) != 0);
	(void)close(names.folder);
	return name != NULL;
}

/* ---- a look ---- */

struct look {
	int file; /* the notes */
	int64_t len;
	bool failed; /* to write them */
	bool cut;
	int room; /* for entries */
	size_t path_len;
	char path[LIMIT_PATH];
	size_t used;
	char out[4 * RECORD_MAX];
};

/* Write the notes that are collected. */
static void
flush(struct look *look)
{
	look->failed |= write(look->file, look->out, look->used) !=
	    (ssize_t)look->used;
	look->len += (int64_t)look->used;
	look->used = 0;
}

/* The caller has seen to it that there is room. */
static void
put(struct look *look, const void *data, size_t len)
{
	memcpy(look->out + look->used, data, len);
	look->used += len;
}

/* Of any year: the owner sets it. */
static uint64_t
nanoseconds(const struct statx_timestamp *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + time->tv_nsec;
}

void
look_mark(const struct statx *status, uint64_t mark[LOOK_MARKS])
{
	mark[0] = status->stx_ino;
	mark[1] = status->stx_size;
	mark[2] = nanoseconds(&status->stx_mtime);
	mark[3] = nanoseconds(&status->stx_ctime);
}

/* One record, as look.h has it. */
static void
note_file(struct look *look, const struct statx *status)
{
	uint16_t len = (uint16_t)look->path_len;
	uint64_t mark[LOOK_MARKS];

	if (look->used + RECORD_MAX > sizeof(look->out))
		flush(look);
	look_mark(status, mark);
	put(look, &len, sizeof(len));
	put(look, look->path, len);
	put(look, mark, sizeof(mark));
}

/* Add a name to the path.  False: it has no room. */
static bool
go_down(struct look *look, const char *name)
{
	size_t len = strlen(name);
	size_t slash = look->path_len > 0 ? 1 : 0;

	if (look->path_len + slash + len > sizeof(look->path))
		return false;
	look->path[look->path_len] = '/';
	memcpy(look->path + look->path_len + slash, name, len);
	look->path_len += slash + len;
	return true;
}

/* Look at all that is in a folder, and close it.  depth: names in the path. */
static void
look_at(struct look *look, int folder, int depth)
{
	struct base_names names = { .folder = folder };
	size_t path_len = look->path_len;
	struct statx status;
	const char *name;

	while (!look->cut && (name = base_next_name(&names)) != NULL) {
		look->cut = look->room-- == 0;
		if (look->cut || name[0] == '.' || !go_down(look, name))
			continue;
		status.stx_mode = 0;
		(void)syscall(SYS_statx, folder, name, AT_SYMLINK_NOFOLLOW,
		    STATX_BASIC_STATS, &status);
		if (S_ISREG(status.stx_mode)) {
			note_file(look, &status);
		} else if (S_ISDIR(status.stx_mode) && depth + 1 < LOOK_DEPTH &&
		    strcmp(name, "__pycache__") != 0) {
			int below = openat(folder, name, LOOK_FOLDER);

			if (below >= 0)
				look_at(look, below, depth + 1);
		}
		look->path_len = path_len;
	}
	look->cut |= names.failed;
	(void)close(folder);
}

/* Look at the folder that look->path names; nothing on the way is followed. */
static void
look_from(struct look *look, int root)
{
	char name[LIMIT_PATH + 1];
	int folder = openat(root, ".", LOOK_FOLDER);
	uint16_t end;
	size_t len;
	int depth = 0;

	for (size_t at = 0; at < look->path_len && folder >= 0; at += len + 1) {
		const char *slash = memchr(look->path + at, '/',
		    look->path_len - at);
		int above = folder;

		len = slash == NULL ? look->path_len - at :
				      (size_t)(slash - look->path) - at;
		memcpy(name, look->path + at, len);
		name[len] = '\0';
		folder = openat(above, name, LOOK_FOLDER);
		(void)close(above);
		depth++;
	}
	if (folder >= 0)
		look_at(look, folder, depth);
	end = look->cut ? SUPERVISOR_LOOK_CUT : 0;
	if (look->used + sizeof(end) > sizeof(look->out))
		flush(look);
	put(look, &end, sizeof(end));
	flush(look);
}

int64_t
look_note(int root, const char *folder, size_t len, int file)
{
	struct look look = { .file = file, .room = LOOK_ENTRIES };
	uint16_t size = (uint16_t)len;
	struct timespec now;
	int64_t began;

	if (len > sizeof(look.path) ||
	    clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
		return -1;
	began = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
	put(&look, &began, sizeof(began));
	put(&look, &size, sizeof(size));
	put(&look, folder, len);
	memcpy(look.path, folder, len);
	look.path_len = len;
	look_from(&look, root);
	return look.failed ? -1 : look.len;
}

/* Are two stretches of a file the same bytes? */
static bool
are_same(int file, int64_t one, int64_t other, int64_t len)
{
	char ours[4096];
	char theirs[sizeof(ours)];

	for (int64_t at = 0; at < len; at += (int64_t)sizeof(ours)) {
		size_t size = len - at < (int64_t)sizeof(ours) ?
		    (size_t)(len - at) :
		    sizeof(ours);

		if (pread(file, ours, size, one + at) != (ssize_t)size ||
		    pread(file, theirs, size, other + at) != (ssize_t)size ||
		    memcmp(ours, theirs, size) != 0)
			return false;
	}
	return true;
}

int64_t
look_again(int root, int file, int64_t at, int64_t len)
{
	const int64_t clock = sizeof(int64_t);
	char folder[LIMIT_PATH];
	uint16_t size = 0;
	int64_t more;

	if (pread(file, &size, sizeof(size), at + clock) != sizeof(size) ||
	    size > sizeof(folder) ||
	    pread(file, folder, size, at + clock + (int64_t)sizeof(size)) !=
		size)
		return -1;
	more = look_note(root, folder, size, file);
	return more == len &&
		are_same(file, at + clock, at + len + clock, len - clock) ?
	    0 :
	    more;
}
