#include "wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../sandbox/base/log.h"

void
wake_init(struct wake *wake, char *path)
{
	wake->path = path;
	wake->fd = -1;
}

void
wake_close(struct wake *wake)
{
	if (wake->fd >= 0)
		(void)close(wake->fd);
	wake->fd = -1;
}

static bool
wake_open(struct wake *wake)
{
	struct stat st;

	if (wake->fd >= 0)
		return true;
	wake->fd = open(wake->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (wake->fd < 0)
		return false; /* ENXIO, ENOENT: no worker is there */
	if (fstat(wake->fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return true;
	log_warn("%s is not a FIFO", wake->path);
	wake_close(wake);
	return false;
}

void
wake_workers(struct wake *wake)
{
	/* A second try: the workers of the first may have been replaced. */
	for (int tries = 0; tries < 2 && wake_open(wake); tries++) {
		if (write(wake->fd, "", 1) == 1 || errno == EAGAIN)
			return;
		wake_close(wake);
	}
}
