/* SPDX-License-Identifier: MIT */
#include "protocol/cancel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"
#include "base/err.h"
#include "base/fd.h"

#define FOLDER "cancels"
#define FOLDER_MODE 0770

/* Heap. */
static char *
path_of(const struct config *config, int64_t job_id)
{
	auto_free char *folder = config_state_path(config, FOLDER);

	return xprintf("%s/%" PRId64, folder, job_id);
}

/* What is there already, a FIFO for instance, is never opened. */
int
cancel_ask(const struct config *config, int64_t job_id, struct err *err)
{
	auto_free char *path = path_of(config, job_id);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0640);

	return fd < 0 && errno != EEXIST ? err_system(err, "%s", path) : 0;
}

int
cancel_watch(const struct config *config, struct err *err)
{
	auto_free char *folder = config_state_path(config, FOLDER);
	auto_close int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd_make_dirs(folder, FOLDER_MODE, err) < 0)
		return -1;
	if (fd < 0 || inotify_add_watch(fd, folder, IN_CREATE | IN_ONLYDIR) < 0)
		return err_system(err, "watch %s", folder);
	return steal_fd(&fd);
}

/* Which file it was is not asked: there may have been more than fit. */
void
cancel_heard(int watch_fd)
{
	char events[4096];

	while (read(watch_fd, events, sizeof(events)) > 0)
		;
}

bool
cancel_is_asked(const struct config *config, int64_t job_id)
{
	auto_free char *path = path_of(config, job_id);

	return access(path, F_OK) == 0;
}

void
cancel_forget(const struct config *config, int64_t job_id)
{
	auto_free char *path = path_of(config, job_id);

	(void)unlink(path);
}

void
cancel_sweep(const struct config *config)
{
	auto_free char *folder = config_state_path(config, FOLDER);
	time_t before = time(NULL) - CANCEL_KEEP_SECONDS;
	auto_dir DIR *dir = opendir(folder);
	const struct dirent *entry;
	struct stat st;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (fstatat(dirfd(dir), entry->d_name, &st,
			AT_SYMLINK_NOFOLLOW) == 0 &&
		    !S_ISDIR(st.st_mode) && st.st_mtime < before)
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
}
