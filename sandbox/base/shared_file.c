/* SPDX-License-Identifier: MIT */
#include "base/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/basics.h"

/* A writer is a process's number and, in the bits above it, its start: Linux
 * gives numbers below 2^22. */
#define PID_BITS 22
#define PID_MOST ((INT64_C(1) << PID_BITS) - 1)
#define START_MOST ((INT64_C(1) << (63 - PID_BITS)) - 1)
/* The start's place among the fields of /proc/PID/stat after the name. */
#define START_AFTER_NAME 20

/* Ours, of its size?  A new file gets it; whoever is second does the same. */
static int
check_file(int fd, const char *path, size_t size, bool make, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_system(err, "%s", path);
	if (!S_ISREG(st.st_mode) || (make && st.st_uid != geteuid()))
		return err_set(err, ERR_CONFIG, "%s: not a file of ours", path);
	if (st.st_size != (off_t)size && !(make && st.st_size == 0))
		return err_set(err, ERR_CONFIG, "%s: of another size", path);
	/* Every user who may enter the folder may read the file. */
	if (make && fchmod(fd, 0644) != 0)
		return err_system(err, "%s", path);
	/* with its room: a write into a hole of a full disk would kill us */
	if (make && (errno = posix_fallocate(fd, 0, (off_t)size)) != 0)
		return err_system(err, "%s", path);
	return 0;
}

static void *
map(const char *path, size_t size, int how, int fd, struct err *err)
{
	void *shared = mmap(NULL, size, how,
	    MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (shared != MAP_FAILED)
		return shared;
	(void)err_system(err, "map %s", path != NULL ? path : "memory");
	return NULL;
}

/* Without O_NONBLOCK a FIFO in its place would wait. */
#define OPEN_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

void *
shared_file_open(const char *path, size_t size, struct err *err)
{
	auto_close int fd = -1;

	if (path != NULL) {
		fd = open(path, O_RDWR | O_CREAT | OPEN_FLAGS, 0600);
		if (fd < 0) {
			(void)err_system(err, "%s", path);
			return NULL;
		}
		if (check_file(fd, path, size, true, err) != 0)
			return NULL;
	}
	return map(path, size, PROT_READ | PROT_WRITE, fd, err);
}

const void *
shared_file_read(const char *path, size_t size, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | OPEN_FLAGS);

	if (fd < 0) {
		(void)err_system(err, "%s", path);
		return NULL;
	}
	if (check_file(fd, path, size, false, err) != 0)
		return NULL;
	return map(path, size, PROT_READ, fd, err);
}

/* The start of a process in ticks since the boot (field 22); 0: there is no
 * such process, or /proc hides it. */
static int64_t
read_start(pid_t pid)
{
	char path[64];
	char text[1024];
	char *at;
	auto_close int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')'); /* its name may hold blanks */
	for (int i = 0; i < START_AFTER_NAME && at != NULL; i++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoll(at, NULL, 10) & START_MOST : 0;
}

int64_t
shared_file_writer(void)
{
	static _Atomic int64_t own; /* of a parent after a fork */

	if (shared_file_writer_pid(own) != getpid())
		own = read_start(getpid()) << PID_BITS | getpid();
	return own;
}

pid_t
shared_file_writer_pid(int64_t writer)
{
	return (pid_t)(writer & PID_MOST);
}

bool
shared_file_writer_is_there(int64_t writer)
{
	pid_t pid = shared_file_writer_pid(writer);
	int64_t noted = writer >> PID_BITS;
	int64_t start;

	if (writer <= 0 || pid == 0 || (kill(pid, 0) != 0 && errno != EPERM))
		return false;
	start = read_start(pid);
	return start == noted || start == 0 || noted == 0;
}

void
shared_file_close(const void *shared, size_t size)
{
	if (shared != NULL)
		(void)munmap((void *)(uintptr_t)shared, size);
}
