/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "shared.h"

/* <linux/mount.h> has them, which cannot be included beside <sys/mount.h>. */
#define TREE_CLONE 1U
#define TREE_CLOEXEC O_CLOEXEC
#define FS_CLOEXEC 1U
#define FS_SET_STRING 1U
#define FS_CREATE 6U
#define MOVE_EMPTY_PATH 4U
#define ATTRIBUTES (2U | 4U | 8U) /* nosuid, nodev, noexec */

/* The two mounts, while they have no place. */
static int names = -1;
static int processes = -1;

static int
close_with(int fd, long done)
{
	int code = errno;

	(void)close(fd);
	errno = code;
	return (int)done;
}

/* Returns the mount, which has no place yet, or -1. */
static int
mount_processes(void)
{
	int fd = (int)syscall(SYS_fsopen, "proc", FS_CLOEXEC);

	if (fd < 0)
		return -1;
	if (syscall(SYS_fsconfig, fd, FS_SET_STRING, "subset", "pid", 0) < 0 ||
	    syscall(SYS_fsconfig, fd, FS_SET_STRING, "hidepid", "ptraceable",
		0) < 0 ||
	    syscall(SYS_fsconfig, fd, FS_CREATE, NULL, NULL, 0) < 0)
		return close_with(fd, -1);
	return close_with(fd, syscall(SYS_fsmount, fd, FS_CLOEXEC, ATTRIBUTES));
}

const char *
view_make(int shown)
{
	names = (int)syscall(SYS_open_tree, shown, "",
	    TREE_CLONE | TREE_CLOEXEC | AT_EMPTY_PATH);
	if (names < 0)
		return "open_tree";
	processes = mount_processes();
	return processes < 0 ? "mount proc" : NULL;
}

static long
move_to(int fd, const char *path)
{
	return syscall(SYS_move_mount, fd, "", AT_FDCWD, path, MOVE_EMPTY_PATH);
}

const char *
view_show(void)
{
	if (move_to(names, "/proc") < 0)
		return "move names to /proc";
	return move_to(processes, SUPERVISOR_PROCESSES) < 0 ?
	    "move proc to /proc" :
	    NULL;
}

void
view_close(void)
{
	base_close(&names);
	base_close(&processes);
}
