#include "wake_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/err.h"

#define BYTES_MAX 4096
#define MODE 0660 /* il-fcgi writes as another user of the same group */

int
wake_fifo_open(const char *path, struct err *err)
{
	struct stat st;
	int fd;

	if (mkfifo(path, MODE) == 0)
		(void)chmod(path, MODE); /* whatever the umask is */
	else if (errno != EEXIST)
		return err_system(err, "make %s", path);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_system(err, "open %s", path);
	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return fd;
	(void)close(fd);
	return err_set(err, ERR_CONFIG, "%s is not a FIFO", path);
}

static int
wait_add(int wait_fd, int fd, uint32_t events, struct err *err)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(wait_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	return err_system(err, "epoll_ctl");
}

int
wake_wait_open(int fd, int stop_fd, struct err *err)
{
	int wait_fd = epoll_create1(EPOLL_CLOEXEC);

	if (wait_fd < 0)
		return err_system(err, "epoll_create1");
	if (wait_add(wait_fd, fd, EPOLLIN | EPOLLEXCLUSIVE, err) == 0 &&
	    wait_add(wait_fd, stop_fd, EPOLLIN, err) == 0)
		return wait_fd;
	(void)close(wait_fd);
	return -1;
}

void
wake_wait(int wait_fd, int fd, int timeout_ms)
{
	struct epoll_event events[2];
	int count = epoll_wait(wait_fd, events, 2, timeout_ms);

	for (int i = 0; i < count; i++)
		if (events[i].data.fd == fd)
			wake_take(fd);
}

void
wake_take(int fd)
{
	char bytes[BYTES_MAX];
	ssize_t n;

	/* A byte wakes for certain only when the FIFO was empty. */
	do
		n = read(fd, bytes, sizeof(bytes));
	while (n < 0 && errno == EINTR);
	if (n > 1 && write(fd, bytes, (size_t)n - 1) < 0)
		return; /* it is full: they wake anyway */
}

void
wake_others(int fd, int count)
{
	while (count-- > 0 && write(fd, "", 1) == 1)
		;
}
