/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cell/supervisor/base.h"

#include "protocol/frame.h"

#define RUN_NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)
#define STACK 4096 /* of a process that only waits */
/* In supervisor_mount.leases: set where every lease may write. */
#define LEASE_OF_NO_FOLDER (1ULL << 63)

static int
wait_for_ever(void *unused)
{
	(void)unused;
	while (pause() < 0)
		;
	return 0;
}

/*
 * An init that does nothing.  Since its code writes nothing it can share our
 * memory, and costs next to nothing.  It ignores SIGCHLD: the kernel reaps for
 * it.  It has no signal handler: a run could trigger that in our memory, on
 * this small stack.  The interpreter has only that of SIGINT.
 */
static pid_t
spawn_init(void)
{
	static char stack[STACK] __attribute__((aligned(16)));
	static const struct sigaction none = { .sa_handler = SIG_DFL };
	struct sigaction interrupt;
	pid_t pid;
	int code;

	(void)signal(SIGCHLD, SIG_IGN);
	(void)sigaction(SIGINT, &none, &interrupt);
	pid = clone(wait_for_ever, stack + sizeof(stack),
	    CLONE_VM | CLONE_FILES | SIGCHLD, NULL);
	code = errno;
	(void)sigaction(SIGINT, &interrupt, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	errno = code;
	return pid;
}

/* When the init ends, the kernel ends all other processes of its namespace. */
const char *
jail_open(pid_t *init)
{
	if (unshare(CLONE_NEWPID) < 0)
		return "unshare";
	*init = spawn_init();
	return *init < 0 ? "clone" : NULL;
}

const char *
jail_leave(const struct supervisor *k)
{
	return k->jailed != 0 && setns(k->pids, CLONE_NEWPID) < 0 ? "setns" :
								    NULL;
}

static const char *
write_proc(int folder, const char *path, const char *text, size_t len)
{
	int fd = openat(folder, path, O_WRONLY | O_CLOEXEC);
	ssize_t written;

	if (fd < 0)
		return path;
	written = write(fd, text, len);
	(void)close(fd);
	return written == (ssize_t)len ? NULL : path;
}

/* Write "SUPERVISOR_ID ID 1": the namespace knows no other id. */
static const char *
map_one(int folder, const char *path, uint32_t id)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%d %u 1", SUPERVISOR_ID, id);

	return write_proc(folder, path, text, (size_t)len);
}

const char *
jail_map_user(const struct supervisor *k, uint32_t uid, uint32_t gid)
{
	const char *failed;

	/* with this our /proc/self belongs to us */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return "prctl";
	failed = write_proc(k->proc, "self/setgroups", "deny", 4);
	if (failed == NULL)
		failed = map_one(k->proc, "self/uid_map", uid);
	if (failed == NULL)
		failed = map_one(k->proc, "self/gid_map", gid);
	return failed;
}

const char *
jail_go_first(const struct supervisor *k)
{
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return "prctl";
	return write_proc(k->proc, "self/oom_score_adj", "1000", 4);
}

static const char *
set_capabilities(uint32_t keep)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct sets[2] = { { .effective = keep,
	    .permitted = keep } };

	return syscall(SYS_capset, &head, sets) < 0 ? "capset" : NULL;
}

static const char *
drop_capabilities(uint32_t keep)
{
	/* up to the last one that the kernel knows */
	for (unsigned long c = 0; prctl(PR_CAPBSET_DROP, c, 0, 0, 0) == 0; c++)
		;
	return set_capabilities(keep);
}

const char *
jail_keep_little(void)
{
	return drop_capabilities(1U << CAP_SYS_ADMIN | 1U << CAP_NET_ADMIN);
}

/* The filter comes last: it refuses what the steps before it need. */
const char *
jail_surrender(const struct supervisor *k, uint32_t keep)
{
	const char *failed = drop_capabilities(keep);

	if (failed == NULL && k->filter != NULL &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, k->filter, 0, 0) < 0)
		failed = "seccomp";
	return failed;
}

/* Returns the name of a failed step, "mount read-only /tmp"; how is "" or a
 * word and a space.  Keeps errno. */
static const char *
mount_step(const char *how, const char *path)
{
	static char step[64];

	(void)snprintf(step, sizeof(step), "mount %s%s", how, path);
	return step;
}

/*
 * ---- a run's own /proc ----
 *
 * It has the processes of the run, and the files that jail.py has put there.  A
 * proc file system is mounted with subset=pid, so it shows only processes, and
 * with hidepid, so it shows only those of the run.
 */

/* The two mounts, until they are attached to /proc. */
static int proc_names = -1;
static int proc_processes = -1;

static int
close_with(int fd, long done)
{
	int code = errno;

	(void)close(fd);
	errno = code;
	return (int)done;
}

/* Returns the mount, not yet attached, or -1. */
static int
mount_processes(void)
{
	int fd = (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);

	if (fd < 0)
		return -1;
	if (syscall(SYS_fsconfig, fd, FSCONFIG_SET_STRING, "subset", "pid", 0) <
		0 ||
	    syscall(SYS_fsconfig, fd, FSCONFIG_SET_STRING, "hidepid",
		"ptraceable", 0) < 0 ||
	    syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return close_with(fd, -1);
	return close_with(fd,
	    syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC,
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
}

/* Make both mounts, in the process of a run before it has its own namespaces
 * but that of pids.  shown: O_PATH of the files beside the processes. */
static const char *
make_proc(int shown)
{
	proc_names = (int)syscall(SYS_open_tree, shown, "",
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (proc_names < 0)
		return "open_tree";
	proc_processes = mount_processes();
	return proc_processes < 0 ? "mount proc" : NULL;
}

static long
attach_mount(int fd, const char *path)
{
	return syscall(SYS_move_mount, fd, "", AT_FDCWD, path,
	    MOVE_MOUNT_F_EMPTY_PATH);
}

/* Attach both mounts, when the process has its own namespaces. */
static const char *
attach_proc(void)
{
	if (attach_mount(proc_names, "/proc") < 0)
		return "move names to /proc";
	return attach_mount(proc_processes, SUPERVISOR_PROCESSES) < 0 ?
	    "move proc to /proc" :
	    NULL;
}

/* ---- a run, before its lease and with it ---- */

/* The user namespace comes first: it gives the rights for the others. */
const char *
jail_confine(const struct supervisor *k)
{
	const char *failed;

	failed = k->shows != 0 ? make_proc(k->shown) : NULL;
	if (failed != NULL)
		return failed;
	if (unshare(RUN_NAMESPACES) < 0)
		return "unshare";
	failed = jail_map_user(k, SUPERVISOR_ID, SUPERVISOR_ID);
	if (failed == NULL)
		failed = jail_go_first(k);
	if (failed != NULL)
		return failed;
	for (uint64_t i = 0; i < k->mount_count; i++) {
		const struct supervisor_mount *m = &k->mounts[i];

		if (mount("tmpfs", m->path, "tmpfs", m->flags, m->options) < 0)
			return mount_step("", m->path);
	}
	return jail_surrender(k, 1U << CAP_SYS_ADMIN);
}

/* The bit of the lease's folder; all bits where the broker has named none. */
static uint64_t
lease_bit(const struct supervisor *k)
{
	const unsigned char *path;
	struct frame_view view;
	size_t len;
	int folder;

	if (k->tries != 0)
		return LEASE_OF_NO_FOLDER;
	if (!frame_parse(&view, k->terms, k->terms_len) ||
	    !frame_get_bytes(&view, TAG_FOLDER, &path, &len))
		return UINT64_MAX;
	folder = base_find_folder(path, len);
	return folder < 0 ? UINT64_MAX : 1ULL << folder;
}

bool
jail_has_proc(const struct supervisor *k)
{
	return lease_bit(k) == 1ULL << SUPERVISOR_WORKSPACE;
}

/* Our own filter lets these calls of mount() and move_mount() through
 * (filter.py). */
const char *
jail_narrow(const struct supervisor *k)
{
	uint64_t bit = lease_bit(k);
	const char *failed = NULL;

	for (uint64_t i = 0; i < k->mount_count; i++) {
		const struct supervisor_mount *m = &k->mounts[i];

		if ((m->leases & bit) == 0 &&
		    mount(NULL, m->path, NULL,
			m->flags | MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
			return mount_step("read-only ", m->path);
	}
	if (k->shows != 0 && (k->tries != 0 || jail_has_proc(k)))
		failed = attach_proc();
	base_close(&proc_names);
	base_close(&proc_processes);
	if (failed != NULL)
		return failed;
	return set_capabilities(0);
}
