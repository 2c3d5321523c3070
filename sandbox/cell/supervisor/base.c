/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/base.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "protocol/frame.h"

#define FILES_MAX 64 /* the interpreter's own limit: run.py, FD_MAX */

const char *const base_folders[] = { SUPERVISOR_FOLDERS };

/* At the end of PID 1 the kernel ends all processes of the container. */
_Noreturn void
base_leave(void)
{
	_exit(0);
}

size_t
base_decimal(char *text, uint64_t value)
{
	char digits[20];
	size_t count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	for (size_t i = 0; i < count; i++)
		text[i] = digits[count - 1 - i];
	return count;
}

size_t
base_describe(char why[SUPERVISOR_WHY_MAX], const char *step, int code)
{
	size_t len = strnlen(step, SUPERVISOR_WHY_MAX - 24);

	memcpy(why, step, len);
	why[len++] = ' ';
	len += base_decimal(why + len, (uint64_t)code);
	why[len] = '\0';
	return len;
}

int
base_fail(struct supervisor *k, const char *step)
{
	if (step == NULL)
		return SUPERVISOR_DONE;
	(void)base_describe(k->why, step, errno);
	return SUPERVISOR_FAILED;
}

void
base_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void
base_close_others(int kept)
{
	const int first = STDERR_FILENO + 1;

	if ((kept <= first ||
		syscall(SYS_close_range, first, kept - 1, 0) == 0) &&
	    syscall(SYS_close_range, kept < first ? first : kept + 1, ~0U, 0) ==
		0)
		return;
	/* before Linux 5.9 */
	for (int fd = first; fd < FILES_MAX; fd++)
		if (fd != kept)
			(void)close(fd);
}

void
base_close_streams(struct supervisor *k)
{
	base_close(&k->in);
	base_close(&k->out);
	base_close(&k->err);
	base_close(&k->brief);
}

void
base_wait(int above, short events_above, int fd, short events)
{
	struct pollfd p[] = { { above, events_above, 0 }, { fd, events, 0 } };

	(void)TEMP_FAILURE_RETRY(poll(p, 2, -1));
	if (p[0].revents != 0)
		base_leave();
}

ssize_t
base_receive(int socket, void *data, size_t size, int how, int *fds,
    size_t count)
{
	union {
		char bytes[CMSG_SPACE(BASE_FDS_MAX * sizeof(int))];
		struct cmsghdr head;
	} extra = { { 0 } };
	struct iovec part = { .iov_base = data, .iov_len = size };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = extra.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	ssize_t len = TEMP_FAILURE_RETRY(recvmsg(socket, &message,
	    how | MSG_CMSG_CLOEXEC));

	fds[0] = -1;
	if (len > 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
	    message.msg_controllen >= CMSG_LEN(count * sizeof(int)) &&
	    extra.head.cmsg_len == CMSG_LEN(count * sizeof(int)) &&
	    extra.head.cmsg_level == SOL_SOCKET &&
	    extra.head.cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(&extra.head), count * sizeof(int));
	return len;
}

/* Receive a packet of the broker's; *fd: the descriptor with it, or -1. */
static uint32_t
receive_packet(const struct supervisor *k, void *data, size_t size, int how,
    int *fd)
{
	ssize_t len = base_receive(k->control, data, size, how, fd, 1);

	if (len <= 0)
		base_leave();
	return (uint32_t)len;
}

int
base_next_lease(struct supervisor *k, int how)
{
	uint8_t kind;
	int fd;

	k->terms_len = receive_packet(k, k->terms, sizeof(k->terms), how, &fd);
	if (k->terms[0] == FRAME_BESIDE && how == MSG_PEEK) {
		base_close(&fd);
		(void)recv(k->control, &kind, 1, 0);
		return -1;
	}
	if (k->terms[0] != FRAME_SERVE || fd < 0)
		_exit(1); /* no lease: this is no broker of ours */
	return fd;
}

int
base_receive_reader(const struct supervisor *k)
{
	uint8_t kind;
	int fd;

	(void)receive_packet(k, &kind, 1, 0, &fd);
	if (kind != FRAME_BESIDE)
		base_leave();
	return fd;
}

const char *
base_next_name(struct base_names *names)
{
	const struct dirent64 *entry;
	long len;

	do {
		if (names->at == names->end) {
			len = syscall(SYS_getdents64, names->folder,
			    names->bytes, sizeof(names->bytes));
			names->failed = len < 0;
			if (len <= 0)
				return NULL;
			names->at = 0;
			names->end = (size_t)len;
		}
		entry = (const void *)(names->bytes + names->at);
		names->at += entry->d_reclen;
	} while (strcmp(entry->d_name, ".") == 0 ||
	    strcmp(entry->d_name, "..") == 0);
	return entry->d_name;
}
