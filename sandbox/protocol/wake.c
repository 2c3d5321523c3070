/* SPDX-License-Identifier: MIT */
/*
 * Both ends of the FIFO by which il-fcgi wakes the workers.
 */
#include "protocol/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"

#define AT_ONCE 128
#define BYTES_MAX 4096
#define MODE 0660 /* il-fcgi writes as another user of the same group */

/* ERR_CONFIG: something else bears its name. */
static int
fifo_open(const char *path, int flags, struct err *err)
{
	auto_close int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_system(err, "open %s", path);
	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return steal_fd(&fd);
	return err_set(err, ERR_CONFIG, "%s is not a FIFO", path);
}

/* ---- il-fcgi ---- */

/* True: the bytes are written, or nobody needs more of them. */
static bool
write_bytes(int fd, size_t count)
{
	static const char bytes[AT_ONCE];

	while (count > 0) {
		size_t some = count < AT_ONCE ? count : AT_ONCE;
		ssize_t n = write(fd, bytes, some);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		count -= (size_t)n;
	}
	return true;
}

/* A second try: the workers of the first may have been replaced.  Without any
 * worker the FIFO cannot be opened. */
void
wake_workers(struct wake *wake, size_t count)
{
	struct err err;

	for (int tries = 0; count > 0 && tries < 2; tries++) {
		if (wake->fd < 0)
			wake->fd = fifo_open(wake->path, O_WRONLY, &err);
		if (wake->fd < 0) {
			if (err.code == ERR_CONFIG)
				log_warn("%s", err.text);
			return;
		}
		if (write_bytes(wake->fd, count))
			return;
		cleanup_close(&wake->fd);
	}
}

/* ---- il-worker ---- */

int
wake_fifo_open(const char *path, struct err *err)
{
	if (mkfifo(path, MODE) == 0)
		(void)chmod(path, MODE); /* whatever the umask is */
	else if (errno != EEXIST)
		return err_system(err, "make %s", path);
	return fifo_open(path, O_RDWR, err);
}

int
wake_wait_open(int fd, int stop_fd, struct err *err)
{
	auto_close int wait_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event wake = { .events = EPOLLIN | EPOLLEXCLUSIVE,
		.data.fd = fd };
	struct epoll_event stop = { .events = EPOLLIN, .data.fd = stop_fd };

	if (wait_fd < 0)
		return err_system(err, "epoll_create1");
	if (epoll_ctl(wait_fd, EPOLL_CTL_ADD, fd, &wake) != 0 ||
	    epoll_ctl(wait_fd, EPOLL_CTL_ADD, stop_fd, &stop) != 0)
		return err_system(err, "epoll_ctl");
	return steal_fd(&wait_fd);
}

void
wake_wait(int wait_fd, int fd, int timeout_ms)
{
	struct epoll_event events[2];
	int count = epoll_wait(wait_fd, events, 2, timeout_ms);
	char bytes[BYTES_MAX];
	ssize_t n;

	for (int i = 0; i < count; i++) {
		if (events[i].data.fd != fd)
			continue;
		/* All but one are written back, for another worker: a byte
		 * wakes for certain only when the FIFO was empty. */
		n = TEMP_FAILURE_RETRY(read(fd, bytes, sizeof(bytes)));
		if (n > 1 && write(fd, bytes, (size_t)n - 1) < 0)
			return; /* it is full: they wake anyway */
	}
}

void
wake_others(int fd, int count)
{
	while (count-- > 0 && write(fd, "", 1) == 1)
		;
}
