/* SPDX-License-Identifier: MIT */
#include "fast_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "names.h"

#include "../../protocol/frame_limits.h"

#define SECOND_NS 1000000000
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define MARKS 4

/* A process has one run. */
struct fast_file fast_file;

static uint64_t
nanoseconds(const struct statx_timestamp *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + time->tv_nsec;
}

/* By its number: C libraries differ in what they call it. */
static bool
look(int at, const char *name, int flags, struct statx *status)
{
	return syscall(SYS_statx, at, name, AT_SYMLINK_NOFOLLOW | flags,
		   STATX_BASIC_STATS, status) == 0;
}

/* All of it, as the request has it. */
static bool
fill(int fd, struct statx *status)
{
	const struct timespec times[2] = {
		{ .tv_sec = (time_t)fast_file.mtime },
		{ .tv_sec = (time_t)fast_file.mtime },
	};

	return (fast_file.len == 0 ||
		   write(fd, fast_file.data, fast_file.len) ==
		       (ssize_t)fast_file.len) &&
	    fchmod(fd, fast_file.mode) == 0 &&
	    (!fast_file.dated || futimens(fd, times) == 0) &&
	    look(fd, "", AT_EMPTY_PATH, status);
}

static bool
make(int folder, const char *name, struct statx *status)
{
	int fd = openat(folder, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool made;

	if (fd < 0)
		return false;
	made = fill(fd, status);
	(void)close(fd);
	if (!made)
		(void)unlinkat(folder, name, 0);
	return made;
}

/* As fast_file.h has it. */
static bool
note(struct supervisor *k, const struct statx *status)
{
	const uint64_t marks[MARKS] = { status->stx_ino, status->stx_size,
		nanoseconds(&status->stx_mtime),
		nanoseconds(&status->stx_ctime) };
	char record[1 + sizeof(marks) + LIMIT_NAME];
	size_t len = 1 + sizeof(marks) + fast_file.name_len;

	record[0] = fast_file.hidden ? 'H' : 'S';
	memcpy(record + 1, marks, sizeof(marks));
	memcpy(record + 1 + sizeof(marks), fast_file.name, fast_file.name_len);
	k->plan.notes = len;
	k->plan.inode = marks[0];
	k->plan.ctime = marks[MARKS - 1];
	return write(k->file, record, len) == (ssize_t)len;
}

bool
fast_file_stage(struct supervisor *k)
{
	char name[LIMIT_NAME + 1];
	struct statx status;
	int folder = openat(AT_FDCWD, base_folders[k->plan.folder],
	    FOLDER_FLAGS);
	bool staged;

	if (folder < 0)
		return false;
	memcpy(name, fast_file.name, fast_file.name_len);
	name[fast_file.name_len] = '\0';
	staged = make(folder, name, &status);
	if (staged && !note(k, &status)) {
		(void)unlinkat(folder, name, 0);
		staged = false;
	}
	(void)close(folder);
	return staged;
}

bool
fast_file_alone(int folder, const struct supervisor_plan *plan)
{
	struct names names = { .folder = openat(folder, ".", FOLDER_FLAGS) };
	const char *name;
	struct statx status;
	bool alone;

	if (names.folder < 0)
		return false;
	name = names_next(&names);
	alone = name != NULL && look(names.folder, name, 0, &status) &&
	    status.stx_ino == plan->inode &&
	    nanoseconds(&status.stx_ctime) == plan->ctime &&
	    names_next(&names) == NULL && !names.failed;
	(void)close(names.folder);
	return alone;
}
