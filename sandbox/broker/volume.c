/* SPDX-License-Identifier: MIT */
/*
 * Loop devices: on a busy host another process may win the race for a free one,
 * so there are several tries.  Locks: a child waits in flock() on the shared
 * open file; it has no other descriptor, and dies with the broker.
 */
#include "broker/volume.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/loop.h"

/* Tries to get a free device before another process does. */
#define ATTACH_TRIES 32
#define LOOP_MAJOR 7
#define RESERVED_BYTES 4096

/* Open /dev/loopN; where no devtmpfs made the node, make it. */
static int
device_open(int number)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/dev/loop%d", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (mknod(path, S_IFBLK | 0660,
		makedev(LOOP_MAJOR, (unsigned int)number)) != 0 &&
	    errno != EEXIST)
		return -1;
	return open(path, O_RDWR | O_CLOEXEC);
}

/* Another process may take the free device first: then the next one is tried.
 * Direct I/O keeps a second copy out of the host's page cache.  The kernel
 * falls back by itself where the volume's file system cannot do it. */
int
attachment_attach(struct attachment *a, struct err *err)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = { .fd = (uint32_t)a->volume_fd,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO };

	assert(a->volume_fd >= 0 && a->device_fd < 0);
	if (control < 0)
		return err_system(err, "open /dev/loop-control");
	for (int i = 0; i < ATTACH_TRIES; i++) {
		auto_close int fd = -1;
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		if (number < 0)
			return err_system(err, "find a free loop device");
		fd = device_open(number);
		if (fd < 0)
			return err_system(err, "open /dev/loop%d", number);
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
			a->device_fd = steal_fd(&fd);
			a->device = number;
			return 0;
		}
		if (errno != EBUSY)
			return err_system(err, "configure /dev/loop%d", number);
	}
	return err_set(err, ERR_BUSY, "no loop device stays free");
}

/* A device without a file would be free for others, so it gets a few bytes of
 * memory. */
int
attachment_reserve(struct attachment *a, struct err *err)
{
	a->volume_fd = memfd_create("held", MFD_CLOEXEC);
	if (a->volume_fd < 0 || ftruncate(a->volume_fd, RESERVED_BYTES) != 0)
		return err_system(err, "make the file of a loop device");
	return attachment_attach(a, err);
}

/* The kernel clears a device when its last user closes it.  It is an error when
 * another process takes the device in that moment. */
int
attachment_replace(struct attachment *a, struct err *err)
{
	struct loop_config config = { .fd = (uint32_t)a->volume_fd,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO };
	auto_close int fd = -1;

	assert(a->volume_fd >= 0 && a->device_fd >= 0);
	(void)ioctl(a->device_fd, LOOP_CLR_FD);
	cleanup_close(&a->device_fd);
	fd = device_open(a->device);
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) != 0)
		return err_system(err, "configure /dev/loop%d", a->device);
	a->device_fd = steal_fd(&fd);
	return 0;
}

void
attachment_detach(struct attachment *a)
{
	cleanup_close(&a->device_fd);
	a->device = -1;
}

void
attachment_release(struct attachment *a)
{
	attachment_detach(a);
	cleanup_close(&a->volume_fd);
}

/* ---- the lock ---- */

void
lock_wait_init(struct lock_wait *w, struct loop *loop)
{
	*w = (struct lock_wait){ .loop = loop, .fd = -1, .child_fd = -1 };
}

bool
lock_wait_is_on(const struct lock_wait *w)
{
	return w->child_fd >= 0;
}

/* Wait in flock(), and end with the lock or with the broker. */
static void __attribute__((noreturn)) lock_wait_main(int fd, pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* No other descriptor of the broker may live on here. */
	if (fd > 0)
		(void)close_range(0, (unsigned int)fd - 1, 0);
	(void)close_range((unsigned int)fd + 1, UINT32_MAX, 0);
	_exit(TEMP_FAILURE_RETRY(flock(fd, LOCK_EX)) == 0 ? 0 : 1);
}

void
lock_wait_stop(struct lock_wait *w)
{
	loop_timer_clear(w->loop, &w->deadline);
	if (w->child_fd < 0)
		return;
	loop_close(w->loop, &w->child_fd);
	(void)kill(w->child, SIGKILL);
	(void)waitpid(w->child, NULL, 0);
}

/* The child has the lock, and with it the broker; or the child died. */
static void
lock_wait_on_end(void *arg, int fd, uint32_t events)
{
	struct lock_wait *w = arg;
	struct err err;

	(void)fd;
	(void)events;
	lock_wait_stop(w);
	if (flock(w->fd, LOCK_EX | LOCK_NB) == 0) {
		w->done(w->arg, NULL);
		return;
	}
	(void)err_system(&err, "wait for the lock of the volume");
	w->done(w->arg, &err);
}

/* The older container did not unlock the volume in time. */
static void
lock_wait_on_deadline(void *arg)
{
	struct lock_wait *w = arg;
	struct err err;

	lock_wait_stop(w);
	(void)err_set(&err, ERR_BUSY,
	    "the volume is still in use by an older container");
	w->done(w->arg, &err);
}

/* Start the child and open its pidfd. */
static int
lock_wait_fork(struct lock_wait *w, struct err *err)
{
	pid_t parent = getpid();

	w->child = fork();
	if (w->child < 0)
		return err_system(err, "fork");
	if (w->child == 0)
		lock_wait_main(w->fd, parent);
	w->child_fd = (int)syscall(SYS_pidfd_open, w->child, 0);
	if (w->child_fd >= 0)
		return 0;
	(void)err_system(err, "pidfd_open");
	(void)kill(w->child, SIGKILL);
	(void)waitpid(w->child, NULL, 0);
	return -1;
}

void
lock_wait_start(struct lock_wait *w, int fd, int ms, lock_wait_fn done,
    void *arg)
{
	struct err err;

	assert(fd >= 0 && !lock_wait_is_on(w));
	w->fd = fd;
	w->done = done;
	w->arg = arg;
	/* Most volumes are unlocked: no child is needed. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		done(arg, NULL);
		return;
	}
	if (errno != EWOULDBLOCK) {
		(void)err_system(&err, "lock the volume");
		done(arg, &err);
	} else if (lock_wait_fork(w, &err) != 0) {
		done(arg, &err);
	} else {
		loop_add(w->loop, w->child_fd, EPOLLIN, lock_wait_on_end, w);
		if (ms >= 0)
			loop_timer_set(w->loop, &w->deadline, ms,
			    lock_wait_on_deadline, w);
	}
}
