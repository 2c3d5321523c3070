/* SPDX-License-Identifier: MIT */
/*
 * One request to another node, by the socket of our own nginx for programs of
 * this host (nginx/nodes.conf), which has the key.
 */
#include "nodes_move.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/text.h"
#include "../move/parcel.h"
#include "../protocol/node_key.h"

/* As nginx/nodes.conf has them. */
#define STALL_SECONDS 60
#define ANSWER_SECONDS 300
#define ANSWER_MAX 65536
#define REASON_MAX 200

static int
open_nginx(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, NODES_SOCKET);
	const struct timeval stall = { .tv_sec = STALL_SECONDS };
	const struct timeval answer = { .tv_sec = ANSWER_SECONDS };
	auto_close int fd = fd_connect_unix(path, SOCK_STREAM, err);

	if (fd < 0)
		return err_wrap(err, "nginx, as `ilctl nginx` says it");
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof(stall));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &answer, sizeof(answer));
	return steal_fd(&fd);
}

static int
send_piece(void *arg, const void *data, size_t len, struct err *err)
{
	const int *fd = arg;
	const char *at = data;

	while (len > 0) {
		ssize_t n = send(*fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_UNKNOWN, "send: %s",
			    strerror(errno));
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The answer's status, -1: there is none, and its body, cut to a line. */
static int
receive(int fd, char reason[REASON_MAX])
{
	auto_buf struct buf text = BUF_INIT(ANSWER_MAX);
	const char *body;
	int64_t status = -1;
	char digits[4] = "";
	char *room;
	ssize_t n;

	while ((room = buf_reserve(&text, 4096)) != NULL &&
	    ((n = recv(fd, room, 4096, 0)) > 0 || (n < 0 && errno == EINTR)))
		buf_commit(&text, n > 0 ? (size_t)n : 0);
	if (text.len > 12 && memcmp(text.data, "HTTP/1.", 7) == 0)
		memcpy(digits, text.data + 9, 3);
	if (!text_parse_int(digits, 100, 599, &status))
		return -1;
	body = strstr(buf_str(&text), "\r\n\r\n");
	(void)snprintf(reason, REASON_MAX, "%s", body != NULL ? body + 4 : "");
	reason[strcspn(reason, "\r\n")] = '\0';
	text_clean_array(reason, REASON_MAX);
	return (int)status;
}

/* After these statuses a person is not there: il-node says so, or nginx before
 * it has asked it.  All others leave it open; nginx makes a 413 of an answer
 * that broke off. */
static enum err_code
code_of(int status)
{
	switch (status) {
	case 400:
	case 403:
	case 404:
		return ERR_INPUT;
	case 409:
		return ERR_CONFLICT;
	case 429:
		return ERR_BUSY;
	case 503:
		return ERR_UNAVAILABLE;
	case 507:
		return ERR_LIMIT;
	default:
		return ERR_UNKNOWN;
	}
}

static int
judge(int status, const char *reason, const struct node_entry *to,
    struct err *err)
{
	if (status == 200)
		return 0;
	if (status < 0)
		return err_set(err, ERR_UNKNOWN, "%s gave no answer", to->name);
	return err_set(err, code_of(status), "%s answered %d %s", to->name,
	    status, reason);
}

int
nodes_send(const struct config *config, const struct node_entry *to,
    int64_t user_id, const struct parcel *parcel, struct err *err)
{
	auto_free char *head = xprintf("PUT /nodes/people/%" PRId64
				       " HTTP/1.1\r\nHost: inline\r\n"
				       "Inline-Node: %s\r\nContent-Length: "
				       "%" PRId64 "\r\nConnection: close\r\n"
				       "\r\n",
	    user_id, to->address, parcel_size(&parcel->head));
	auto_close int fd = open_nginx(config, err);
	char reason[REASON_MAX] = "";
	int sent;

	if (fd < 0)
		return -1;
	sent = send_piece(&fd, head, strlen(head), err);
	if (sent == 0)
		sent = parcel_send(parcel, send_piece, &fd, err);
	/* our own fault: what is cut short is not taken */
	if (sent != 0 && err->code != ERR_UNKNOWN)
		return -1;
	return judge(receive(fd, reason), reason, to, err);
}

int
nodes_announce(const struct config *config, const struct node_entry *to,
    int slot, struct err *err)
{
	auto_free char *head = xprintf("PUT /nodes/slots/%d HTTP/1.1\r\n"
				       "Host: inline\r\nInline-Node: %s\r\n"
				       "Content-Length: 0\r\n"
				       "Connection: close\r\n\r\n",
	    slot, to->address);
	auto_close int fd = open_nginx(config, err);
	char reason[REASON_MAX] = "";

	if (fd < 0 || send_piece(&fd, head, strlen(head), err) != 0)
		return -1;
	return judge(receive(fd, reason), reason, to, err);
}
