/* SPDX-License-Identifier: MIT */
#include "shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "err.h"

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
	/* Whoever may enter the folder may look. */
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

bool
shared_file_writer_is_there(int64_t pid)
{
	return pid > 0 && pid <= INT32_MAX &&
	    (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

void
shared_file_close(const void *shared, size_t size)
{
	if (shared != NULL)
		(void)munmap((void *)(uintptr_t)shared, size);
}
