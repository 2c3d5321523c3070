/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/listing.h"

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
listing_empty_folder(const char *path)
{
	struct base_names names = { .folder = openat(AT_FDCWD, path,
					LISTING_FOLDER) };
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
listing_has_name(const char *path, const char *beginning)
{
	struct base_names names = { .folder = openat(AT_FDCWD, path,
					LISTING_FOLDER) };
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

/* ---- a listing ---- */

struct listing {
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
flush_notes(struct listing *list)
{
	list->failed |= write(list->file, list->out, list->used) !=
	    (ssize_t)list->used;
	list->len += (int64_t)list->used;
	list->used = 0;
}

/* There must be room. */
static void
put_note(struct listing *list, const void *data, size_t len)
{
	memcpy(list->out + list->used, data, len);
	list->used += len;
}

/* Any year is possible, as the owner can set the time. */
static uint64_t
stamp_of(const struct statx_timestamp *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + time->tv_nsec;
}

void
listing_mark(const struct statx *status, uint64_t mark[LISTING_MARKS])
{
	mark[0] = status->stx_ino;
	mark[1] = status->stx_size;
	mark[2] = stamp_of(&status->stx_mtime);
	mark[3] = stamp_of(&status->stx_ctime);
}

/* Write one record, as listing.h has it. */
static void
note_file(struct listing *list, const struct statx *status)
{
	uint16_t len = (uint16_t)list->path_len;
	uint64_t mark[LISTING_MARKS];

	if (list->used + RECORD_MAX > sizeof(list->out))
		flush_notes(list);
	listing_mark(status, mark);
	put_note(list, &len, sizeof(len));
	put_note(list, list->path, len);
	put_note(list, mark, sizeof(mark));
}

/* Add a name to the path.  False: it has no room. */
static bool
go_down(struct listing *list, const char *name)
{
	size_t len = strlen(name);
	size_t slash = list->path_len > 0 ? 1 : 0;

	if (list->path_len + slash + len > sizeof(list->path))
		return false;
	list->path[list->path_len] = '/';
	memcpy(list->path + list->path_len + slash, name, len);
	list->path_len += slash + len;
	return true;
}

/* List a folder with all below it, and close it.  depth: names in the path. */
static void
list_folder(struct listing *list, int folder, int depth)
{
	struct base_names names = { .folder = folder };
	size_t path_len = list->path_len;
	struct statx status;
	const char *name;

	while (!list->cut && (name = base_next_name(&names)) != NULL) {
		list->cut = list->room-- == 0;
		if (list->cut || name[0] == '.' || !go_down(list, name))
			continue;
		status.stx_mode = 0;
		(void)syscall(SYS_statx, folder, name, AT_SYMLINK_NOFOLLOW,
		    STATX_BASIC_STATS, &status);
		if (S_ISREG(status.stx_mode)) {
			note_file(list, &status);
		} else if (S_ISDIR(status.stx_mode) &&
		    depth + 1 < LISTING_DEPTH &&
		    strcmp(name, "__pycache__") != 0) {
			int below = openat(folder, name, LISTING_FOLDER);

			if (below >= 0)
				list_folder(list, below, depth + 1);
		}
		list->path_len = path_len;
	}
	list->cut |= names.failed;
	(void)close(folder);
}

/* List the folder that list->path names; no link on the way is followed. */
static void
list_path(struct listing *list, int root)
{
	char name[LIMIT_PATH + 1];
	int folder = openat(root, ".", LISTING_FOLDER);
	uint16_t end;
	size_t len;
	int depth = 0;

	for (size_t at = 0; at < list->path_len && folder >= 0; at += len + 1) {
		const char *slash = memchr(list->path + at, '/',
		    list->path_len - at);
		int above = folder;

		len = slash == NULL ? list->path_len - at :
				      (size_t)(slash - list->path) - at;
		memcpy(name, list->path + at, len);
		name[len] = '\0';
		folder = openat(above, name, LISTING_FOLDER);
		(void)close(above);
		depth++;
	}
	if (folder >= 0)
		list_folder(list, folder, depth);
	end = list->cut ? SUPERVISOR_LISTING_CUT : 0;
	if (list->used + sizeof(end) > sizeof(list->out))
		flush_notes(list);
	put_note(list, &end, sizeof(end));
	flush_notes(list);
}

int64_t
listing_write(int root, const char *folder, size_t len, int file)
{
	struct listing list = { .file = file, .room = LISTING_ENTRIES };
	uint16_t size = (uint16_t)len;
	struct timespec now;
	int64_t began;

	if (len > sizeof(list.path) ||
	    clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
		return -1;
	began = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
	put_note(&list, &began, sizeof(began));
	put_note(&list, &size, sizeof(size));
	put_note(&list, folder, len);
	memcpy(list.path, folder, len);
	list.path_len = len;
	list_path(&list, root);
	return list.failed ? -1 : list.len;
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
listing_compare(int root, int file, int64_t at, int64_t len)
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
	more = listing_write(root, folder, size, file);
	return more == len &&
		are_same(file, at + clock, at + len + clock, len - clock) ?
	    0 :
	    more;
}
