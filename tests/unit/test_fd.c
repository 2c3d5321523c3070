/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/basics.h"
#include "tap.h"

static const char *folder;

static bool
is_cloexec(int fd)
{
	return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

static void
test_listen(const char *path, const char *label)
{
	struct err err = { 0 };
	struct stat st = { 0 };
	auto_close int listener = fd_listen_unix(path, SOCK_SEQPACKET, 0660,
	    &err);
	auto_close int client = -1;
	auto_close int second = -1;

	note("%s", label);
	ok(listener >= 0 && is_cloexec(listener), "listens, close-on-exec");
	ok(lstat(path, &st) == 0 && (st.st_mode & 07777) == 0660,
	    "the socket file has the mode asked for, whatever the umask");
	client = fd_connect_unix(path, SOCK_SEQPACKET, &err);
	ok(client >= 0 && is_cloexec(client), "connects, close-on-exec");
	second = fd_listen_unix(path, SOCK_SEQPACKET, 0660, &err);
	ok(second < 0 && err.code == ERR_BUSY, "a live socket is not taken");
	second = fd_listen_unix(path, SOCK_STREAM, 0660, &err);
	ok(second < 0 && err.code == ERR_BUSY, "nor by another type");
	(void)close(steal_fd(&listener));
	(void)close(steal_fd(&client));
	client = fd_connect_unix(path, SOCK_SEQPACKET, &err);
	ok(client < 0 && err.code == ERR_UNAVAILABLE, "nobody listens");
	second = fd_listen_unix(path, SOCK_SEQPACKET, 0600, &err);
	ok(second >= 0, "a dead socket file is replaced");
	(void)unlink(path);
	client = fd_connect_unix(path, SOCK_SEQPACKET, &err);
	ok(client < 0 && err.code == ERR_UNAVAILABLE, "no socket file");
}

/* A broker that is stopped must not stop those who ask it. */
static void
test_full_queue(const char *path)
{
	struct err err = { 0 };
	auto_close int listener = fd_listen_unix(path, SOCK_SEQPACKET, 0660,
	    &err);
	int clients[512];
	size_t n = 0;

	(void)alarm(30); /* it hangs where this fails */
	while (n < 512 &&
	    (clients[n] = fd_connect_unix(path, SOCK_SEQPACKET, &err)) >= 0)
		n++;
	ok(listener >= 0 && n > 0 && n < 512, "a queue has an end");
	is_int(err.code, ERR_BUSY, "at which nobody waits for long");
	(void)alarm(0);
	while (n > 0)
		(void)close(clients[--n]);
	(void)unlink(path);
}

/* The listener is killed, and somebody else still holds its socket. */
static void
test_listen_orphan(const char *path)
{
	auto_close int second = -1;
	int hold[2];
	struct err err;
	pid_t pid;

	is_int(pipe(hold), 0, "a pipe");
	pid = fork();
	if (pid == 0) {
		int fd = fd_listen_unix(path, SOCK_STREAM, 0660, &err);

		(void)close(hold[1]);
		if (fd >= 0 && fork() == 0)
			(void)!read(hold[0], &(char){ 0 }, 1);
		_exit(fd >= 0 ? 0 : 1);
	}
	(void)waitpid(pid, NULL, 0);
	second = fd_listen_unix(path, SOCK_STREAM, 0660, &err);
	ok(second >= 0, "a socket whose maker is gone is taken over");
	(void)close(hold[0]);
	(void)close(hold[1]);
	(void)unlink(path);
}

static void
test_listen_paths(void)
{
	auto_buf struct buf path = BUF_INIT(4096);
	auto_buf struct buf deep = BUF_INIT(4096);
	struct err err = { 0 };
	mode_t old = umask(077);
	auto_close int fd = -1;

	buf_addf(&path, "%s/short.sock", folder);
	test_listen(buf_str(&path), "short path");
	test_listen_orphan(buf_str(&path));
	test_full_queue(buf_str(&path));
	buf_addf(&deep, "%s/%0120d", folder, 7);
	is_int(fd_make_dirs(buf_str(&deep), 0700, &err), 0, "a deep folder");
	buf_adds(&deep, "/x.sock");
	test_listen(buf_str(&deep), "a path over 107 bytes");
	buf_reset(&path);
	buf_addf(&path, "%s/file", folder);
	fd = open(buf_str(&path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	is_int(fd_listen_unix(buf_str(&path), SOCK_STREAM, 0600, &err), -1,
	    "a file in the way");
	is_int(err.code, ERR_BUSY, "is left alone");
	is_int(access(buf_str(&path), F_OK), 0, "and still there");
	buf_adds(&path, "/missing/x");
	is_int(fd_listen_unix(buf_str(&path), SOCK_STREAM, 0600, &err), -1,
	    "no folder");
	(void)umask(old);
}

static void
test_packets(void)
{
	struct err err = { 0 };
	char data[64] = "";
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		exit(1);
	is_int(fd_send_packet(pair[0], "hello", 5, -1, 0, &err), 0, "send");
	is_int(fd_send_packet(pair[0], "you", 3, -1, 0, &err), 0, "send");
	is_int(fd_receive_packet(pair[1], data, sizeof(data), NULL, 0, &err), 5,
	    "one packet is received alone");
	is_mem(data, (size_t)5, "hello", (size_t)5, "with its bytes");
	is_int(fd_receive_packet(pair[1], data, sizeof(data), NULL, -1, &err),
	    3, "then the next");
	is_int(fd_receive_packet(pair[1], data, sizeof(data), NULL, 20, &err),
	    -1, "nothing there");
	is_int(err.code, ERR_TIMEOUT, "is a timeout");
	is_int(fd_send_packet(pair[0], "", 0, -1, 0, &err), -1,
	    "an empty packet is refused");
	(void)fd_send_packet(pair[0], "too long", 8, -1, 0, &err);
	is_int(fd_receive_packet(pair[1], data, 4, NULL, 0, &err), -1,
	    "a packet over the cap");
	is_int(err.code, ERR_PROTOCOL, "breaks the protocol");
	(void)close(pair[0]);
	is_int(fd_receive_packet(pair[1], data, sizeof(data), NULL, 1000, &err),
	    0, "the end");
	is_int(fd_send_packet(pair[1], "x", 1, -1, 0, &err), -1,
	    "sending to nobody");
	is_int(err.code, ERR_PROTOCOL, "is no signal, and an error");
	(void)close(pair[1]);
}

static void
test_send_timeout(void)
{
	struct err err = { 0 };
	static char big[60000];
	int64_t start = clock_monotonic_ms();
	int pair[2];
	int sent = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		exit(1);
	while (sent < 1000 &&
	    fd_send_packet(pair[0], big, sizeof(big), -1, 30, &err) == 0)
		sent++;
	ok(sent > 0 && sent < 1000, "a peer that does not read is noticed");
	is_int(err.code, ERR_TIMEOUT, "as a timeout");
	ok(clock_monotonic_ms() - start >= 30, "not before the time");
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void
test_reset(void)
{
	struct err err = { 0 };
	char data[64];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		exit(1);
	(void)fd_send_packet(pair[0], "unread", 6, -1, 0, &err);
	(void)fd_send_packet(pair[1], "last words", 10, -1, 0, &err);
	(void)close(pair[1]);
	is_int(fd_receive_packet(pair[0], data, sizeof(data), NULL, 100, &err),
	    10, "last words of a peer that did not read ours");
	is_int(fd_receive_packet(pair[0], data, sizeof(data), NULL, 100, &err),
	    0, "and then the end");
	(void)close(pair[0]);
}

static int
open_count(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			n++;
	return n;
}

/* The descriptor is kept, given a slot; otherwise it is closed. */
static void
test_rights(void)
{
	struct err err = { 0 };
	char data[8];
	int pipes[2];
	int pair[2];
	int before;
	int fd = 77;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
	    pipe2(pipes, O_CLOEXEC) != 0)
		exit(1);
	before = open_count();
	(void)fd_send_packet(pair[0], "x", 1, pipes[1], 0, &err);
	is_int(fd_receive_packet(pair[1], data, 8, &fd, 0, &err), 1, "one");
	ok(fd >= 0 && is_cloexec(fd), "one descriptor");
	is_int(write(fd, "!", 1), 1, "which works");
	is_int(read(pipes[0], data, 8), 1, "and is the one sent");
	(void)close(fd);
	(void)fd_send_packet(pair[0], "x", 1, -1, 0, &err);
	(void)fd_receive_packet(pair[1], data, 8, &fd, 0, &err);
	is_int(fd, -1, "none");
	(void)fd_send_packet(pair[0], "x", 1, pipes[0], 0, &err);
	(void)fd_receive_packet(pair[1], data, 8, NULL, 0, &err);
	is_int(open_count(), before, "one that nobody takes is closed");
	(void)fd_send_packet(pair[0], "long one", 8, pipes[0], 0, &err);
	fd = 77;
	(void)fd_receive_packet(pair[1], data, 2, &fd, 0, &err);
	is_int(fd, -1, "none with a packet that is refused");
	is_int(open_count(), before, "none is left open");
	(void)close(pair[0]);
	(void)close(pair[1]);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}

/* A peer that breaks the rule of one: refused, and nothing leaks. */
static void
test_too_many_rights(size_t count)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(3 * sizeof(int))];
	} control = { 0 };
	struct iovec part = { .iov_base = &control, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	const int fds[3] = { 0, 1, 2 };
	struct err err = { 0 };
	char data[8];
	int pair[2];
	int before;
	int fd;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		exit(1);
	before = open_count();
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	is_int(sendmsg(pair[0], &message, 0), 1, "too many descriptors");
	is_int(fd_receive_packet(pair[1], data, 8, &fd, 0, &err), -1,
	    "are refused");
	is_int(err.code, ERR_PROTOCOL, "as a breach of the protocol");
	is_int(open_count(), before, "and none is left open");
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void
test_write_all(void)
{
	static char big[300000];
	struct err err = { 0 };
	size_t total = 0;
	char data[4096];
	int pipes[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		exit(1);
	is_int(fcntl(pipes[1], F_SETFL, O_NONBLOCK), 0, "nonblocking");
	pid = fork();
	if (pid == 0) {
		(void)close(pipes[0]);
		_exit(fd_write_all(pipes[1], big, sizeof(big), &err) == 0 ? 0 :
									    1);
	}
	(void)close(pipes[1]);
	while ((n = read(pipes[0], data, sizeof(data))) > 0)
		total += (size_t)n;
	is_int(total, sizeof(big), "everything is written through a full pipe");
	(void)close(pipes[0]);
	is_int(fd_write_all(-1, "x", 1, &err), -1, "a bad descriptor");
}

static void
test_signals(void)
{
	struct signalfd_siginfo info = { 0 };
	struct err err = { 0 };
	auto_close int fd = fd_signals(true, &err);

	ok(fd >= 0 && is_cloexec(fd), "a descriptor for signals");
	ok(read(fd, &info, sizeof(info)) < 0 && errno == EAGAIN,
	    "which does not block");
	(void)kill(getpid(), SIGHUP);
	ok(read(fd, &info, sizeof(info)) == sizeof(info) &&
		info.ssi_signo == SIGHUP,
	    "an extra signal");
	(void)kill(getpid(), SIGTERM);
	ok(read(fd, &info, sizeof(info)) == sizeof(info) &&
		info.ssi_signo == SIGTERM,
	    "SIGTERM");
	ok(raise(SIGPIPE) == 0, "SIGPIPE is ignored");
}

static void
test_make_dirs(void)
{
	auto_buf struct buf path = BUF_INIT(4096);
	struct stat st = { 0 };
	struct err err = { 0 };

	buf_addf(&path, "%s/a//b/c/", folder);
	is_int(fd_make_dirs(buf_str(&path), 0750, &err), 0, "with parents");
	ok(stat(buf_str(&path), &st) == 0 && (st.st_mode & 07777) == 0750,
	    "mode");
	is_int(fd_make_dirs(buf_str(&path), 0750, &err), 0, "twice");
	is_int(fd_make_dirs("/", 0750, &err), 0, "the root");
	is_int(fd_make_dirs("", 0750, &err), -1, "no path");
	buf_reset(&path);
	buf_addf(&path, "%s/file/x", folder);
	is_int(fd_make_dirs(buf_str(&path), 0750, &err), -1, "through a file");
}

int
main(void)
{
	folder = tap_folder();
	test_listen_paths();
	test_packets();
	test_send_timeout();
	test_reset();
	test_rights();
	test_too_many_rights(2);
	test_too_many_rights(3);
	test_write_all();
	test_make_dirs();
	test_signals();
	return tap_done();
}
