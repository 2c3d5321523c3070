#include "wake_send.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/log.h"

#define WAKE_AT_ONCE 128

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
open_fifo(struct wake *wake)
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

/* True: the bytes are written, or nobody needs more of them. */
static bool
write_bytes(const struct wake *wake, size_t count)
{
	static const char bytes[WAKE_AT_ONCE];

	while (count > 0) {
		size_t some = count < WAKE_AT_ONCE ? count : WAKE_AT_ONCE;
		ssize_t n = write(wake->fd, bytes, some);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		count -= (size_t)n;
	}
	return true;
}

void
wake_workers(struct wake *wake, size_t count)
{
	/* A second try: the workers of the first may have been replaced. */
	for (int tries = 0; count > 0 && tries < 2 && open_fifo(wake);
	     tries++) {
		if (write_bytes(wake, count))
			return;
		wake_close(wake);
	}
}
