/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/basics.h"

#define SIGNAL_ECHO_MS 1000
/* A signal may fall between the timer and the wait: it comes again. */
#define LOCK_AGAIN_NS 50000000L

#define FD_BACKLOG 128
#define FD_CONNECT_S 1

/*
 * Fill in the address.  A path over the 107 bytes that sun_path holds goes
 * through /proc/self/fd and a descriptor of its folder, which *dir keeps open.
 */
static int
fd_unix_address(struct sockaddr_un *address, const char *path, int *dir,
    struct err *err)
{
	const char *slash = strrchr(path, '/');
	auto_free char *folder = NULL;
	int len;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (*path == '\0')
		return err_set(err, ERR_INPUT, "a socket needs a path");
	if (strlen(path) < sizeof(address->sun_path)) {
		memcpy(address->sun_path, path, strlen(path));
		return 0;
	}
	if (slash == NULL)
		return err_set(err, ERR_INPUT, "socket name too long: %s",
		    path);
	folder = xstrndup(path, (size_t)(slash - path) + 1);
	*dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir < 0)
		return err_system(err, "open %s", folder);
	len = snprintf(address->sun_path, sizeof(address->sun_path),
	    "/proc/self/fd/%d/%s", *dir, slash + 1);
	if (len < 0 || (size_t)len >= sizeof(address->sun_path))
		return err_set(err, ERR_INPUT, "socket name too long: %s",
		    path);
	return 0;
}

/* connect(2), whatever interrupts it. */
static int
fd_connect_address(int fd, const struct sockaddr_un *address)
{
	return (int)TEMP_FAILURE_RETRY(connect(fd,
	    (const struct sockaddr *)address, sizeof(*address)));
}

/* Remove a socket file that nobody listens on; ERR_BUSY for anything else. */
static int
fd_clear_path(const struct sockaddr_un *address, const char *path, int type,
    struct err *err)
{
	auto_close int probe = -1;
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	struct stat st;
	bool dead;

	if (lstat(address->sun_path, &st) != 0)
		return errno == ENOENT ? 0 : err_system(err, "stat %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_BUSY, "%s is there and is no socket",
		    path);
	/* Nonblocking: a listener whose queue is full says EAGAIN: it lives. */
	probe = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return err_system(err, "make a socket");
	/* Is the process gone that made the socket at the other end listen?
	 * Its children, which end with it, may hold that a moment longer. */
	if (fd_connect_address(probe, address) == 0)
		dead = getsockopt(probe, SOL_SOCKET, SO_PEERCRED, &peer,
			   &len) == 0 &&
		    peer.pid > 0 && kill(peer.pid, 0) != 0 && errno == ESRCH;
	else
		dead = errno == ECONNREFUSED;
	if (!dead)
		return err_set(err, ERR_BUSY, "%s is in use by another process",
		    path);
	if (unlink(address->sun_path) != 0 && errno != ENOENT)
		return err_system(err, "remove the dead socket %s", path);
	return 0;
}

int
fd_listen_unix(const char *path, int type, mode_t mode, struct err *err)
{
	struct sockaddr_un address;
	auto_close int dir = -1;
	auto_close int fd = -1;

	if (fd_unix_address(&address, path, &dir, err) != 0 ||
	    fd_clear_path(&address, path, type & ~SOCK_NONBLOCK, err) != 0)
		return -1;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_system(err, "make a socket");
	/* The file is born with these bits less the umask, so that it is never
	 * open to more than asked for; chmod then adds what the umask took. */
	if (fchmod(fd, mode) != 0)
		return err_system(err, "set the mode of %s", path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return err_system(err, "bind %s", path);
	if (chmod(address.sun_path, mode) != 0 || listen(fd, FD_BACKLOG) != 0) {
		(void)err_system(err, "listen on %s", path);
		(void)unlink(address.sun_path);
		return -1;
	}
	return steal_fd(&fd);
}

int
fd_connect_unix(const char *path, int type, struct err *err)
{
	/* connect(2) waits for room in the listener's queue as long as a send
	 * may take.  Nothing else here sends blocking, so that the limit
	 * stays. */
	struct timeval limit = { .tv_sec = FD_CONNECT_S };
	struct sockaddr_un address;
	auto_close int dir = -1;
	auto_close int fd = -1;

	if (fd_unix_address(&address, path, &dir, err) != 0) {
		if (errno == ENOENT && err->code == ERR_SYSTEM)
			err->code = ERR_UNAVAILABLE;
		return -1;
	}
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0)
		return err_system(err, "make a socket");
	if (fd_connect_address(fd, &address) == 0)
		return steal_fd(&fd);
	(void)err_system(err, "connect to %s", path);
	if (errno == ENOENT || errno == ECONNREFUSED)
		err->code = ERR_UNAVAILABLE;
	else if (errno == EAGAIN)
		err->code = ERR_BUSY;
	return -1;
}

/* Wait until the descriptor is ready or hung up; else ERR_TIMEOUT with what did
 * not come about within so many milliseconds (< 0: wait for ever). */
static int
fd_wait(int fd, short events, int64_t deadline_ms, const char *what,
    int timeout_ms, struct err *err)
{
	struct pollfd item = { .fd = fd, .events = events };
	long n = TEMP_FAILURE_RETRY(poll(&item, 1,
	    clock_poll_timeout(deadline_ms)));

	if (n < 0)
		return err_system(err, "poll");
	return n > 0 ?
	    0 :
	    err_set(err, ERR_TIMEOUT, "%s within %d ms", what, timeout_ms);
}

/* -1: there is none. */
static int64_t
fd_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : clock_monotonic_ms() + timeout_ms;
}

/* Room for the one descriptor that a packet may carry. */
union fd_control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(int))];
};

/* Tried first, and waited for only where that fails. */
int
fd_send_packet(int sock, const void *data, size_t len, int fd, int timeout_ms,
    struct err *err)
{
	/* sendmsg does not write there; struct iovec only has no const. */
	union {
		const void *in;
		void *out;
	} bytes = { .in = data };
	struct iovec part = { .iov_base = bytes.out, .iov_len = len };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t deadline = fd_deadline(timeout_ms);
	union fd_control control = { 0 };
	struct cmsghdr *header;

	/* The receiver could not tell an empty packet from the end. */
	if (len == 0)
		return err_set(err, ERR_INPUT, "send: an empty packet");
	if (fd >= 0) {
		message.msg_control = control.space;
		message.msg_controllen = sizeof(control.space);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	while (sendmsg(sock, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
			return err_set(err, ERR_PROTOCOL,
			    "send: the peer hung up");
		if (errno != EAGAIN && errno != EINTR)
			return err_system(err, "send a packet");
		if (fd_wait(sock, POLLOUT, deadline, "send: not taken",
			timeout_ms, err) != 0)
			return -1;
	}
	return 0;
}

int
fd_send_packets(int sock, struct fd_packets *packets, int timeout_ms,
    struct err *err)
{
	struct mmsghdr messages[FD_PACKETS] = { 0 };
	struct iovec *parts = packets->parts;
	size_t done = 0;

	for (size_t i = 0; i < packets->count; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i],
			.msg_iovlen = 1 };
	while (done < packets->count) {
		int n = sendmmsg(sock, messages + done,
		    (unsigned int)(packets->count - done),
		    MSG_NOSIGNAL | MSG_DONTWAIT);

		/* The next packet did not go with the others: it goes alone. */
		if (n <= 0 &&
		    fd_send_packet(sock, parts[done].iov_base,
			parts[done].iov_len, -1, timeout_ms, err) != 0)
			return -1;
		done += n > 0 ? (size_t)n : 1;
	}
	return 0;
}

/* One recvmsg: the length, 0 at the end, -1 error, -2 nothing there yet.  The
 * room is for one descriptor; the kernel closes those that are more. */
static ssize_t
fd_receive_once(int sock, void *data, size_t cap, int *fd, struct err *err)
{
	struct iovec part = { .iov_base = data, .iov_len = cap };
	union fd_control control;
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_LEN(sizeof(*fd)) };
	ssize_t n = recvmsg(sock, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *header;

	/* A peer that closed with packets of ours unread resets us once; what
	 * it had sent before is still there behind it, and then the end. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return -2;
	if (n < 0)
		return err_system(err, "receive a packet");
	header = CMSG_FIRSTHDR(&message);
	if (header != NULL && header->cmsg_level == SOL_SOCKET &&
	    header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	if ((message.msg_flags & MSG_TRUNC) != 0)
		return err_set(err, ERR_PROTOCOL,
		    "receive: a packet over %zu bytes", cap);
	if ((message.msg_flags & MSG_CTRUNC) != 0)
		return err_set(err, ERR_PROTOCOL,
		    "receive: more descriptors than allowed");
	return n;
}

bool
fd_wait_unless(int sock, const struct pollfd *unless, int timeout_ms)
{
	struct pollfd p[2] = { { .fd = sock, .events = POLLIN } };
	int64_t deadline = fd_deadline(timeout_ms);

	if (unless == NULL)
		return true;
	p[1] = *unless;
	while (poll(p, 2, clock_poll_timeout(deadline)) < 0 && errno == EINTR)
		;
	return p[0].revents != 0 || p[1].revents == 0;
}

ssize_t
fd_receive_packet(int sock, void *data, size_t cap, int *fd, int timeout_ms,
    struct err *err)
{
	int64_t deadline = fd_deadline(timeout_ms);
	auto_close int received = -1;
	ssize_t n;

	do
		n = fd_receive_once(sock, data, cap, &received, err);
	while (n == -2 &&
	    fd_wait(sock, POLLIN, deadline, "receive: nothing", timeout_ms,
		err) == 0);
	if (fd != NULL)
		*fd = n > 0 ? steal_fd(&received) : -1;
	return n == -2 ? -1 : n;
}

int
fd_write_all(int fd, const void *data, size_t len, struct err *err)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n >= 0) {
			at += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			if (fd_wait(fd, POLLOUT, -1, "write: not taken", -1,
				err) != 0)
				return -1;
		} else if (errno != EINTR) {
			return err_system(err, "write");
		}
	}
	return 0;
}

int
fd_signals(bool of_children, struct err *err)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (of_children) {
		(void)sigaddset(&set, SIGHUP);
		(void)sigaddset(&set, SIGCHLD);
	}
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
	    sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return err_system(err, "block signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd >= 0 ? fd : err_system(err, "signalfd");
}

bool
fd_signal_is_echo(int64_t *last_ms)
{
	int64_t now_ms = clock_monotonic_ms();

	if (*last_ms != 0 && now_ms - *last_ms < SIGNAL_ECHO_MS)
		return true;
	*last_ms = now_ms;
	return false;
}

int
fd_make_dirs(const char *path, mode_t mode, struct err *err)
{
	auto_free char *copy = xstrdup(path);
	char *slash = copy;
	struct stat st;

	if (*path == '\0')
		return err_set(err, ERR_INPUT, "a folder needs a path");
	/* From the top: the path before each slash but the first, then the
	 * whole.  Folders that exist are used. */
	while (slash != NULL) {
		slash = strchr(slash + 1, '/');
		if (slash != NULL)
			*slash = '\0';
		if (mkdir(copy, mode) != 0) {
			if (errno != EEXIST || stat(copy, &st) != 0)
				return err_system(err, "make the folder %s",
				    copy);
			if (!S_ISDIR(st.st_mode))
				return err_set(err, ERR_CONFLICT,
				    "%s is not a folder", copy);
		}
		if (slash != NULL)
			*slash = '/';
	}
	return 0;
}

static void
on_lock_timer(int number)
{
	(void)number;
}

/* A wait for a lock is ended by nothing but a signal. */
bool
fd_lock_within(int fd, int64_t timeout_ms)
{
	const struct sigaction action = { .sa_handler = on_lock_timer };
	const struct itimerspec when = {
		.it_value = { .tv_sec = timeout_ms / 1000,
		    .tv_nsec = timeout_ms % 1000 * 1000000L },
		.it_interval = { .tv_nsec = LOCK_AGAIN_NS },
	};
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMIN };
	int64_t until_ms = clock_monotonic_ms() + timeout_ms;
	bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
	timer_t timer;

	if (locked || errno != EWOULDBLOCK || timeout_ms <= 0 ||
	    sigaction(SIGRTMIN, &action, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		return locked;
	(void)timer_settime(timer, 0, &when, NULL);
	do
		locked = flock(fd, LOCK_EX) == 0;
	while (!locked && errno == EINTR && clock_monotonic_ms() < until_ms);
	(void)timer_delete(timer);
	return locked;
}
