#include "attachment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/err.h"

/* Between "which is free" and taking it, others may be faster. */
#define ATTACH_TRIES 32
#define LOOP_MAJOR 7

void
attachment_init(struct attachment *a, struct loop *loop)
{
	*a = (struct attachment){
		.volume_fd = -1, .device_fd = -1, .device = -1
	};
	lock_wait_init(&a->wait, loop);
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
 * by itself where the file system of the volume cannot do it. */
static int
device_configure(int device_fd, int volume_fd)
{
	struct loop_config config = { .fd = (uint32_t)volume_fd };

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
		if (device_configure(fd, a->volume_fd) == 0) {
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
wait_on_end(void *arg, const struct err *failure)
{
	struct attachment *a = arg;

	if (failure == NULL)
		attachment_locked(a);
	else
		a->done(a->arg, failure);
}

void
attachment_start(struct attachment *a, int volume_fd, int wait_ms,
    attachment_fn done, void *arg)
{
	struct err err;

	a->volume_fd = volume_fd;
	a->done = done;
	a->arg = arg;
	if (flock(volume_fd, LOCK_EX | LOCK_NB) == 0) {
		attachment_locked(a);
		return;
	}
	if (errno != EWOULDBLOCK)
		(void)err_system(&err, "lock the volume");
	else if (lock_wait_start(&a->wait, volume_fd, wait_ms, wait_on_end, a,
		     &err) == 0)
		return;
	done(arg, &err);
}

void
attachment_release(struct attachment *a)
{
	lock_wait_stop(&a->wait);
	attachment_detach(a);
	cleanup_close(&a->volume_fd);
	a->volume_fd = -1;
}
