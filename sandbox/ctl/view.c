/* SPDX-License-Identifier: MIT */
/*
 * A mount namespace that is made once, in a child, and entered by every
 * program that needs it.
 */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"

#define PATHS_MAX 8
#define COVER_OPTIONS "mode=0755,size=1m,nr_inodes=1k"

/* The first folder on the way that others may not pass; NULL: there is none. */
static char *
barrier_of(const char *path)
{
	auto_free char *way = xstrdup(path);
	struct stat st;

	for (char *slash = strchr(way + 1, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (stat(way, &st) == 0 && (st.st_mode & S_IXOTH) == 0)
			return xstrdup(way);
		*slash = '/';
	}
	return NULL;
}

static bool
is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return strncmp(path, folder, len) == 0 &&
	    (path[len] == '/' || path[len] == '\0');
}

/* Does an earlier or a wider one bring it along? */
static bool
is_covered(const char *const *paths, size_t count, size_t i)
{
	for (size_t k = 0; k < count; k++)
		if (k != i && is_below(paths[i], paths[k]) &&
		    (strlen(paths[k]) < strlen(paths[i]) || k < i))
			return true;
	return false;
}

/* Mounts of containers: a copy would keep their devices in use when they are
 * long gone. */
static int
leave_containers(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *m;

	if (mounts == NULL)
		return -1;
	while ((m = getmntent(mounts)) != NULL)
		if (strcmp(m->mnt_dir, "/") != 0 &&
		    (strcmp(m->mnt_type, "overlay") == 0 ||
			strcmp(m->mnt_type, "nsfs") == 0 ||
			strncmp(m->mnt_fsname, "/dev/loop", 9) == 0))
			(void)umount2(m->mnt_dir, MNT_DETACH | UMOUNT_NOFOLLOW);
	(void)endmntent(mounts);
	return 0;
}

/* All folders on the way to a path, and itself. */
static int
make_way(const char *path)
{
	auto_free char *way = xstrdup(path);

	for (char *slash = strchr(way + 1, '/');;
	     slash = strchr(slash + 1, '/')) {
		if (slash != NULL)
			*slash = '\0';
		if (mkdir(way, 0755) != 0 && errno != EEXIST)
			return -1;
		if (slash == NULL)
			return 0;
		*slash = '/';
	}
}

/* Open all before anything is covered, then cover, then show. */
static int
build(const char *const *paths, size_t count)
{
	int fds[PATHS_MAX];
	char source[64];

	(void)umask(022); /* what is made on the way is to be passed */
	if (unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
	    leave_containers() != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		fds[i] = open(paths[i],
		    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fds[i] < 0)
			return -1;
	}
	for (size_t i = 0; i < count; i++) {
		auto_free char *barrier = barrier_of(paths[i]);

		/* After it was covered for another path it is none. */
		if (barrier != NULL &&
		    mount("tmpfs", barrier, "tmpfs", MS_NOSUID | MS_NODEV,
			COVER_OPTIONS) != 0)
			return -1;
	}
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(source, sizeof(source), "/proc/self/fd/%d",
		    fds[i]);
		if (!is_covered(paths, count, i) &&
		    (make_way(paths[i]) != 0 ||
			mount(source, paths[i], NULL, MS_BIND, NULL) != 0))
			return -1;
	}
	return 0;
}

/* The namespace belongs to the child; it is ours once it is open. */
static int
take(int *fd, const char *const *paths, size_t count, struct err *err)
{
	char path[64];
	int done[2];
	int hold[2];
	int failure = EPIPE;
	pid_t pid;

	if (pipe2(done, O_CLOEXEC) != 0 || pipe2(hold, O_CLOEXEC) != 0)
		return err_system(err, "pipe");
	pid = fork();
	if (pid == 0) {
		(void)close(hold[1]);
		failure = build(paths, count) != 0 ? errno : 0;
		(void)!write(done[1], &failure, sizeof(failure));
		(void)!read(hold[0], &failure, 1); /* until it is taken */
		_exit(0);
	}
	(void)close(done[1]);
	(void)close(hold[0]);
	if (pid > 0 &&
	    read(done[0], &failure, sizeof(failure)) == sizeof(failure) &&
	    failure == 0) {
		(void)snprintf(path, sizeof(path), "/proc/%ld/ns/mnt",
		    (long)pid);
		*fd = open(path, O_RDONLY | O_CLOEXEC);
		failure = *fd < 0 ? errno : 0;
	}
	(void)close(done[0]);
	(void)close(hold[1]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (failure == 0)
		return 0;
	errno = failure;
	return err_system(err, "a view of the folders");
}

/* Only where a path cannot be passed is there anything to do. */
int
view_open(int *fd, const char *const *paths, size_t count, struct err *err)
{
	auto_free char *barrier = NULL;
	size_t which = 0;

	*fd = -1;
	for (; which < count && barrier == NULL; which++)
		barrier = barrier_of(paths[which]);
	if (barrier == NULL)
		return 0;
	if (count <= PATHS_MAX && take(fd, paths, count, err) == 0)
		return 0;
	return err_set(err, ERR_CONFIG,
	    "%s: other users may not pass it, and no namespace of mounts is "
	    "to be had (%s): chmod o+x, or another place for the clone",
	    barrier, count <= PATHS_MAX ? err->text : "too many folders");
}

int
view_enter(int fd)
{
	return fd < 0 ? 0 : setns(fd, CLONE_NEWNS);
}
