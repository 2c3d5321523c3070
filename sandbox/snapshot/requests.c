/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../protocol/frame.h"
#include "../protocol/snapshot.h"
#include "snapshotter.h"

#define REQUESTS_MAX 256
#define QUESTION_MAX 1024
#define ASK_MS 10000 /* to say what is wanted */

static void
request_free(struct request *request)
{
	struct snapshotter *s = request->s;

	loop_timer_clear(s->loop, &request->timer);
	if (request->kind == REQUEST_NEW)
		loop_remove(s->loop, request->fd);
	cleanup_close(&request->fd);
	TAILQ_REMOVE(&s->requests, request, link);
	s->request_count--;
	free(request);
}

/* Whoever asked may be gone. */
void
request_end(struct request *request, const struct outcome *outcome)
{
	struct frame answer;
	struct err err;

	if (outcome->rc < 0) {
		frame_start(&answer, FRAME_REFUSED);
		frame_add_int(&answer, TAG_CODE, outcome->err.code);
		frame_add_text(&answer, TAG_TEXT, outcome->err.text);
	} else {
		frame_start(&answer, FRAME_GRANTED);
		if (request->kind == REQUEST_RESTORE && outcome->rc == 0)
			frame_add_int(&answer, TAG_MTIME, outcome->seconds);
	}
	(void)fd_send_packet(request->fd, answer.data, answer.len, -1, 0, &err);
	request_free(request);
}

/* False: it makes no sense. */
static bool
take_question(struct request *request, const void *packet, size_t len)
{
	const unsigned char *from;
	struct frame_view view;
	size_t from_len;

	if (!frame_parse(&view, packet, len) ||
	    !frame_get_text(&view, TAG_SANDBOX, request->to,
		sizeof(request->to)) ||
	    !task_is_id(request->to))
		return false;
	memcpy(request->from, request->to, sizeof(request->from));
	if (view.kind == FRAME_FORGET) {
		request->kind = REQUEST_FORGET;
		return true;
	}
	if (view.kind != FRAME_RESTORE ||
	    !frame_get_bytes(&view, TAG_NAME, &from, &from_len) ||
	    from_len != TASK_ID_LEN)
		return false;
	memcpy(request->from, from, TASK_ID_LEN);
	request->kind = REQUEST_RESTORE;
	return task_is_id(request->from);
}

static void
on_question(void *arg, int fd, uint32_t events)
{
	struct request *request = arg;
	struct snapshotter *s = request->s;
	unsigned char packet[QUESTION_MAX];
	struct outcome no = { .rc = -1 };
	struct err err;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), NULL, 0,
	    &err);

	(void)events;
	loop_remove(s->loop, fd);
	loop_timer_clear(s->loop, &request->timer);
	if (len > 0 && take_question(request, packet, (size_t)len)) {
		snapshotter_look(s);
		return;
	}
	request->kind = REQUEST_FORGET; /* it is not watched any more */
	(void)err_set(&no.err, ERR_INPUT, "a question without sense");
	request_end(request, &no);
}

static void
on_silence(void *arg)
{
	request_free(arg);
}

static void
on_connection(void *arg, int fd, uint32_t events)
{
	struct snapshotter *s = arg;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct request *request;

	(void)events;
	if (client < 0)
		return;
	if (s->request_count == REQUESTS_MAX || s->stopping) {
		(void)close(client);
		return;
	}
	request = xcalloc(1, sizeof(*request));
	request->s = s;
	request->fd = client;
	TAILQ_INSERT_TAIL(&s->requests, request, link);
	s->request_count++;
	loop_add(s->loop, client, EPOLLIN, on_question, request);
	loop_timer_set(s->loop, &request->timer, ASK_MS, on_silence, request);
}

/* In a folder whose group is a program's, the socket is its group's, too. */
static int
listen_at(struct snapshotter *s, const char *name, struct err *err)
{
	auto_free char *path = config_state_path(s->config, name);
	auto_free char *copy = xstrdup(path);
	int fd;

	if (fd_make_dirs(dirname(copy), 0750, err) != 0)
		return -1;
	fd = fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK, 0660, err);
	if (fd >= 0)
		loop_add(s->loop, fd, EPOLLIN, on_connection, s);
	return fd < 0 ? -1 : 0;
}

int
requests_open(struct snapshotter *s, struct err *err)
{
	if (listen_at(s, SOCKET_SNAPSHOT_WORKER, err) != 0)
		return -1;
	return listen_at(s, SOCKET_SNAPSHOT_CTL, err);
}
