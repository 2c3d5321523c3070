/* SPDX-License-Identifier: MIT */
/*
 * A mount namespace that is made once, left again, and entered by every program
 * that needs it.
 */
#include <assert.h>
#include <fcntl.h>
#include <mntent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "prepare.h"

#define PATHS_MAX 11
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

/* Does an earlier or a wider one bring it along? */
static bool
is_covered(const char *const *paths, size_t count, size_t i)
{
	for (size_t k = 0; k < count; k++) {
		size_t len = strlen(paths[k]);

		if (k != i && strncmp(paths[i], paths[k], len) == 0 &&
		    (paths[i][len] == '/' || (paths[i][len] == '\0' && k < i)))
			return true;
	}
	return false;
}

static bool
is_shown(const char *const *paths, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(paths[i], path) == 0)
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

/* In the new namespace: open all before anything is covered, then cover, then
 * show.  False: errno says why. */
static bool
build(const char *const *paths, size_t count)
{
	int fds[PATHS_MAX];
	struct err err;
	bool good = mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
	    leave_containers() == 0;

	for (size_t i = 0; i < count; i++) {
		fds[i] = !good ?
		    -1 :
		    open(paths[i],
			O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		good = fds[i] >= 0;
	}
	for (size_t i = 0; good && i < count; i++) {
		auto_free char *barrier = barrier_of(paths[i]);

		/* After it was covered for another path it is none.  A
		 * folder that is shown whole gets none: the cover would come
		 * along with it. */
		good = barrier == NULL || is_shown(paths, count, barrier) ||
		    mount("tmpfs", barrier, "tmpfs", MS_NOSUID | MS_NODEV,
			COVER_OPTIONS) == 0;
	}
	for (size_t i = 0; i < count; i++) {
		auto_free char *source = xprintf("/proc/self/fd/%d", fds[i]);

		if (good && !is_covered(paths, count, i))
			good = fd_make_dirs(paths[i], 0755, &err) == 0 &&
			    mount(source, paths[i], NULL, MS_BIND | MS_REC,
				NULL) == 0;
		cleanup_close(&fds[i]);
	}
	return good;
}

/* Only where a path cannot be passed is there anything to do. */
int
view_open(int *fd, const char *const *paths, size_t count, struct err *err)
{
	auto_close int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	auto_close int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_free char *barrier = NULL;
	struct err why;
	mode_t mask;

	*fd = -1;
	assert(count <= PATHS_MAX);
	for (size_t i = 0; i < count && barrier == NULL; i++)
		barrier = barrier_of(paths[i]);
	if (barrier == NULL)
		return 0;
	mask = umask(022); /* what is made on the way is to be passed */
	if (home >= 0 && here >= 0 && unshare(CLONE_NEWNS) == 0) {
		if (build(paths, count))
			*fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
		/* The new one lives by its descriptor; we go back. */
		if (setns(home, CLONE_NEWNS) != 0 || fchdir(here) != 0)
			cleanup_close(fd);
	}
	(void)err_system(&why, "a view of the folders");
	(void)umask(mask);
	if (*fd >= 0)
		return 0;
	return err_set(err, ERR_CONFIG,
	    "%s: other users may not pass it, and no namespace of mounts is "
	    "to be had (%s): chmod o+x, or another place for the clone",
	    barrier, why.text);
}
