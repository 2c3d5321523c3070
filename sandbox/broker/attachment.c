/* SPDX-License-Identifier: MIT */
/*
 * The loop devices. Losing a race for a free one is normal on a busy host, and
 * is tried again.
 */
#include "attachment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/err.h"

/* Between "which is free" and taking it, others may be faster. */
#define ATTACH_TRIES 32
#define LOOP_MAJOR 7

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
	struct loop_config config = { .fd = (uint32_t)volume_fd,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO };

	return ioctl(device_fd, LOOP_CONFIGURE, &config);
}

/* Between asking for a free device and taking it another process may take it:
 * then the next one is asked for. */
int
attachment_attach(struct attachment *a, struct err *err)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

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
	a->device = -1;
}

void
attachment_release(struct attachment *a)
{
	attachment_detach(a);
	cleanup_close(&a->volume_fd);
}
