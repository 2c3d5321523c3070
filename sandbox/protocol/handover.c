/* SPDX-License-Identifier: MIT */
#include "protocol/handover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"
#include "base/err.h"
#include "base/fd.h"
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

int
wake_fifo_open(const char *path, struct err *err)
{
	if (mkfifo(path, MODE) == 0)
		(void)chmod(path, MODE); /* in spite of the umask */
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

/* ---- cancelled jobs ---- */

#define CANCELS "cancels"
#define CANCELS_MODE 0770

/* Heap. */
static char *
cancel_path(const struct config *config, int64_t job_id)
{
	auto_free char *folder = config_state_path(config, CANCELS);

	return xprintf("%s/%" PRId64, folder, job_id);
}

/* O_EXCL opens nothing that exists, a FIFO for instance. */
int
cancel_ask(const struct config *config, int64_t job_id, struct err *err)
{
	auto_free char *path = cancel_path(config, job_id);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0640);

	return fd < 0 && errno != EEXIST ? err_system(err, "%s", path) : 0;
}

int
cancel_watch(const struct config *config, struct err *err)
{
	auto_free char *folder = config_state_path(config, CANCELS);
	auto_close int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd_make_dirs(folder, CANCELS_MODE, err) < 0)
		return -1;
	if (fd < 0 || inotify_add_watch(fd, folder, IN_CREATE | IN_ONLYDIR) < 0)
		return err_system(err, "watch %s", folder);
	return steal_fd(&fd);
}

/* The events do not matter: there may have been more than fit. */
void
cancel_heard(int watch_fd)
{
	char events[4096];

	while (read(watch_fd, events, sizeof(events)) > 0)
		;
}

bool
cancel_is_asked(const struct config *config, int64_t job_id)
{
	auto_free char *path = cancel_path(config, job_id);

	return access(path, F_OK) == 0;
}

void
cancel_forget(const struct config *config, int64_t job_id)
{
	auto_free char *path = cancel_path(config, job_id);

	(void)unlink(path);
}

void
cancel_sweep(const struct config *config)
{
	auto_free char *folder = config_state_path(config, CANCELS);
	time_t before = time(NULL) - CANCEL_KEEP_SECONDS;
	auto_dir DIR *dir = opendir(folder);
	const struct dirent *entry;
	struct stat st;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (fstatat(dirfd(dir), entry->d_name, &st,
			AT_SYMLINK_NOFOLLOW) == 0 &&
		    !S_ISDIR(st.st_mode) && st.st_mtime < before)
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
}

/* ---- first responses ---- */

#define ANSWERS "answers"
#define ANSWERS_MODE 0750
#define SOCKET_MODE 0660
#define REPLY_SENT 'S'
#define REPLY_LATE 'L'
#define REPLY_UNKNOWN 'U'

char *
first_response_path(const struct config *config, int64_t index)
{
	auto_free char *folder = config_state_path(config, ANSWERS);

	return xprintf("%s/%" PRId64, folder, index);
}

int
first_response_give(const char *path, int64_t job_id, const char *json,
    int timeout_ms, struct err *err)
{
	auto_buf struct buf packet = BUF_INIT(FIRST_RESPONSE_SIZE);
	auto_close int fd = fd_connect_unix(path, SOCK_SEQPACKET, err);

	if (fd < 0)
		return -1;
	buf_add(&packet, &job_id, sizeof(job_id));
	buf_adds(&packet, json);
	if (packet.overflow)
		return err_set(err, ERR_LIMIT, "the response is too long");
	if (fd_send_packet(fd, packet.data, packet.len, -1, timeout_ms, err) !=
	    0)
		return -1;
	return steal_fd(&fd);
}

/* Only the first byte of the reply counts; without one nobody is there. */
enum first_response
first_response_outcome(int fd, int timeout_ms, struct err *err)
{
	char reply = 0;

	if (fd_receive_packet(fd, &reply, 1, NULL, timeout_ms, err) < 0)
		return FIRST_RESPONSE_NOBODY;
	if (reply == REPLY_SENT)
		return FIRST_RESPONSE_SENT;
	if (reply == REPLY_LATE)
		return FIRST_RESPONSE_LATE;
	(void)err_set(err, ERR_PROTOCOL,
	    reply == REPLY_UNKNOWN ? "the front does not hold it" :
				     "no word on the response");
	return FIRST_RESPONSE_NOBODY;
}

int
first_response_listen(const struct config *config, size_t index,
    struct err *err)
{
	auto_free char *folder = config_state_path(config, ANSWERS);
	auto_free char *path = first_response_path(config, (int64_t)index);

	if (fd_make_dirs(folder, ANSWERS_MODE, err) < 0)
		return -1;
	return fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK, SOCKET_MODE,
	    err);
}

const char *
first_response_receive(int fd, char *data, int64_t *job_id)
{
	struct err err;
	ssize_t n = fd_receive_packet(fd, data, FIRST_RESPONSE_SIZE - 1, NULL,
	    0, &err);

	if (n < (ssize_t)sizeof(*job_id))
		return NULL;
	memcpy(job_id, data, sizeof(*job_id));
	data[n] = '\0';
	return data + sizeof(*job_id);
}

/* A worker that does not wait for it any more has not taken it for sent. */
void
first_response_reply(int fd, enum first_response what)
{
	static const char replies[] = {
		[FIRST_RESPONSE_SENT] = REPLY_SENT,
		[FIRST_RESPONSE_LATE] = REPLY_LATE,
		[FIRST_RESPONSE_NOBODY] = REPLY_UNKNOWN,
	};
	const char reply = replies[what];
	struct err err;

	(void)fd_send_packet(fd, &reply, 1, -1, 0, &err);
}
