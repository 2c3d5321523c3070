/* SPDX-License-Identifier: MIT */
#include "move/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "protocol/lease.h"

#define ROUND_MS 5000 /* then its cell is asked for once more */

bool
volume_is(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && strcmp(name + len - 5, ".ext4") == 0;
}

int
volumes_each(const char *base, const char *sandbox, volume_fn fn, void *arg,
    struct err *err)
{
	auto_free char *path = xprintf("%s/%s", base, sandbox);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	int result = 0;

	if (dir == NULL) {
		(void)err_system(err, "%s", path);
		err->code = errno == ENOENT ? ERR_NOT_FOUND : ERR_SYSTEM;
		return -1;
	}
	while (result == 0 && (e = readdir(dir)) != NULL)
		if (volume_is(e->d_name))
			result = fn(arg, fd, e->d_name, err);
	return result;
}

bool
volume_lock(const char *socket, int fd, const char *sandbox, int64_t wait_ms)
{
	int64_t until_ms = clock_monotonic_ms() + wait_ms;
	int64_t rest_ms;
	struct err err;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	do {
		/* without a broker whoever holds it ends by itself */
		(void)lease_kept(socket, sandbox, true, &rest_ms, ROUND_MS,
		    &err);
		if (fd_lock_within(fd, ROUND_MS))
			return true;
	} while (clock_monotonic_ms() < until_ms);
	return false;
}
