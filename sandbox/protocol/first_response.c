/* SPDX-License-Identifier: MIT */
#include "protocol/first_response.h"

#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"
#include "base/err.h"
#include "base/fd.h"

#define FOLDER "answers"
#define FOLDER_MODE 0750
#define SOCKET_MODE 0660
#define REPLY_SENT 'S'
#define REPLY_LATE 'L'
#define REPLY_UNKNOWN 'U'

char *
first_response_path(const struct config *config, int64_t index)
{
	auto_free char *folder = config_state_path(config, FOLDER);

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

/* Of the reply only the first byte counts; without one nobody is there. */
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
	auto_free char *folder = config_state_path(config, FOLDER);
	auto_free char *path = first_response_path(config, (int64_t)index);

	if (fd_make_dirs(folder, FOLDER_MODE, err) < 0)
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
