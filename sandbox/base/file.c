/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"

int
file_read(const char *path, struct buf *out, struct err *err)
{
	/* a FIFO that nobody writes to must not hold us up */
	auto_close int fd = open(path,
	    O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	char piece[4096];
	ssize_t got = fd < 0 ? -1 : 1;

	while (got > 0 && !out->overflow) {
		got = TEMP_FAILURE_RETRY(read(fd, piece, sizeof(piece)));
		if (got > 0)
			buf_add(out, piece, (size_t)got);
	}
	if (got == 0)
		return 0;
	if (out->overflow)
		(void)err_set(err, ERR_CONFIG, "%s is over %zu bytes", path,
		    out->max);
	else
		(void)err_system(err, "%s %s", fd < 0 ? "open" : "read", path);
	err->code = ERR_CONFIG;
	return -1;
}

int
file_write(const char *path, const char *text, size_t len, bool lasting,
    struct err *err)
{
	auto_free char *temporary = xprintf("%s.new", path);
	auto_close int fd = -1;
	struct stat old;

	fd = open(temporary,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return err_system(err, "%s", temporary);
	if (stat(path, &old) == 0)
		(void)!fchown(fd, (uid_t)-1, old.st_gid);
	if (fd_write_all(fd, text, len, err) == 0 &&
	    (!lasting || fsync(fd) == 0) && rename(temporary, path) == 0)
		return 0;
	(void)err_system(err, "write %s", path);
	(void)unlink(temporary);
	return -1;
}

bool
file_is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino &&
	    one->st_size == other->st_size &&
	    one->st_ctim.tv_sec == other->st_ctim.tv_sec &&
	    one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}
