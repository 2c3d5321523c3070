#include "attachment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/loop.h"

/* Between "which is free" and taking it, others may be faster. */
#define ATTACH_TRIES 32
#define LOOP_MAJOR 7

void
attachment_init(struct attachment *a, struct loop *loop)
{
	*a = (struct attachment){ .loop = loop,
		.image_fd = -1,
		.device_fd = -1,
		.device = -1,
		.waiter_fd = -1 };
}

/* ---- the loop device ---- */

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

/* Direct I/O: no second copy in the host's page cache.  The kernel falls back
 * by itself where the file system of the image cannot do it. */
static int
device_configure(int device_fd, int image_fd)
{
	struct loop_config config = { .fd = (uint32_t)image_fd };

	config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
	return ioctl(device_fd, LOOP_CONFIGURE, &config);
}

int
attachment_attach(struct attachment *a, struct err *err)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

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
		if (device_configure(fd, a->image_fd) == 0) {
			a->device_fd = steal_fd(&fd);
			a->device = number;
			return 0;
		}
		if (errno != EBUSY)
			return err_system(err, "configure /dev/loop%d", number);
	}
	return err_set(err, ERR_BUSY, "no loop device stays free");
}

void
attachment_detach(struct attachment *a)
{
	cleanup_close(&a->device_fd);
	a->device_fd = -1;
	a->device = -1;
}

/* ---- the lock ---- */

/* flock(2) cannot be polled.  So a child that shares the open file waits in it:
 * the lock that it gets is the open file's, hence ours too. */
static void __attribute__((noreturn)) waiter_main(int image_fd, pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* Whatever else the broker has open must not live on here. */
	if (image_fd > 0)
		(void)close_range(0, (unsigned int)image_fd - 1, 0);
	(void)close_range((unsigned int)image_fd + 1, UINT32_MAX, 0);
	while (flock(image_fd, LOCK_EX) != 0) {
		if (errno != EINTR)
			_exit(1);
	}
	_exit(0);
}

static void
waiter_end(struct attachment *a)
{
	if (a->deadline != NULL)
		loop_timer_cancel(a->loop, a->deadline);
	a->deadline = NULL;
	if (a->waiter_fd < 0)
		return;
	loop_remove(a->loop, a->waiter_fd);
	(void)close(a->waiter_fd);
	a->waiter_fd = -1;
	(void)kill(a->waiter, SIGKILL);
	(void)waitpid(a->waiter, NULL, 0);
}

static void
attachment_locked(struct attachment *a)
{
	struct err err;

	if (attachment_attach(a, &err) == 0)
		a->done(a->arg, NULL);
	else
		a->done(a->arg, &err);
}

static void
waiter_on_end(void *arg, int fd, uint32_t events)
{
	struct attachment *a = arg;
	struct err err;

	(void)fd;
	(void)events;
	waiter_end(a);
	if (flock(a->image_fd, LOCK_EX | LOCK_NB) == 0) {
		attachment_locked(a);
		return;
	}
	(void)err_system(&err, "wait for the lock of the image");
	a->done(a->arg, &err);
}

static void
waiter_on_deadline(void *arg)
{
	struct attachment *a = arg;
	struct err err;

	a->deadline = NULL;
	waiter_end(a);
	(void)err_set(&err, ERR_BUSY,
	    "the image is still in use by an older container");
	a->done(a->arg, &err);
}

static int
waiter_start(struct attachment *a, int wait_ms, struct err *err)
{
	pid_t parent = getpid();

	a->waiter = fork();
	if (a->waiter < 0)
		return err_system(err, "fork");
	if (a->waiter == 0)
		waiter_main(a->image_fd, parent);
	a->waiter_fd = (int)syscall(SYS_pidfd_open, a->waiter, 0);
	if (a->waiter_fd < 0) {
		(void)err_system(err, "pidfd_open");
		(void)kill(a->waiter, SIGKILL);
		(void)waitpid(a->waiter, NULL, 0);
		return -1;
	}
	loop_add(a->loop, a->waiter_fd, EPOLLIN, waiter_on_end, a);
	a->deadline = loop_timer_add(a->loop, clock_monotonic_ms() + wait_ms,
	    waiter_on_deadline, a);
	return 0;
}

void
attachment_start(struct attachment *a, int image_fd, int wait_ms,
    attachment_fn done, void *arg)
{
	struct err err;

	a->image_fd = image_fd;
	a->done = done;
	a->arg = arg;
	if (flock(image_fd, LOCK_EX | LOCK_NB) == 0) {
		attachment_locked(a);
		return;
	}
	if (errno != EWOULDBLOCK)
		(void)err_system(&err, "lock the image");
	else if (waiter_start(a, wait_ms, &err) == 0)
		return;
	done(arg, &err);
}

void
attachment_release(struct attachment *a)
{
	waiter_end(a);
	attachment_detach(a);
	cleanup_close(&a->image_fd);
	a->image_fd = -1;
}
