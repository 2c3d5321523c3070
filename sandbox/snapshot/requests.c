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
#include "../base/text.h"
#include "../protocol/frame.h"
#include "../protocol/snapshot.h"
#include "snapshotter.h"

#define REQUESTS_MAX 256
#define QUESTION_MAX 1024
#define ASK_MS 10000 /* to say what is wanted */
/* Of copies, which strangers bring il-api to ask for. */
#define COPIES_ASKED 64
#define COPY_FIRST_MS 10000 /* until something is told */
#define COPY_WHOLE_MS 60000

struct listener {
	struct snapshotter *s;
	bool api;
};

static void
request_free(struct request *request)
{
	struct snapshotter *s = request->s;

	loop_timer_clear(s->loop, &request->timer);
	if (request->watched)
		loop_remove(s->loop, request->fd);
	/* other processes may have it, too */
	if (request->kind == REQUEST_COPY)
		(void)shutdown(request->fd, SHUT_RDWR);
	cleanup_close(&request->fd);
	TAILQ_REMOVE(&s->requests, request, link);
	s->request_count--;
	s->copy_count -= request->api;
	free(request);
}

/* Whoever asked may be gone.  Of a copy its process has told all. */
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
	if (request->kind != REQUEST_COPY || !outcome->over)
		(void)fd_send_packet(request->fd, answer.data, answer.len, -1,
		    0, &err);
	request_free(request);
}

static bool
take_copy(struct request *request, const struct frame_view *view)
{
	const unsigned char *id;
	size_t len;

	if (view->kind != FRAME_COPY ||
	    !frame_get_bytes(view, TAG_NAME, &id, &len) ||
	    !text_is_uuid((const char *)id, len))
		return false;
	memcpy(request->file, id, len);
	request->kind = REQUEST_COPY;
	return true;
}

/* False: it makes no sense, or is not for this program to ask. */
static bool
take_question(struct request *request, const void *packet, size_t len)
{
	const unsigned char *from;
	struct frame_view view;
	size_t from_len;

	if (!frame_parse(&view, packet, len))
		return false;
	if (request->api)
		return take_copy(request, &view);
	if (!frame_get_text(&view, TAG_SANDBOX, request->to,
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

/* Who asks for a copy says nothing more: it hung up. */
static void
on_hangup(void *arg, int fd, uint32_t events)
{
	struct request *request = arg;

	(void)events;
	loop_remove(request->s->loop, fd);
	request->watched = false;
	request->gone = true;
	if (request->running)
		tasks_kill_request(request->s, request);
	else
		request_free(request);
}

static void
on_late(void *arg)
{
	struct request *request = arg;
	struct snapshotter *s = request->s;
	struct outcome no = { .rc = -1 };

	if (request->running && !request->late && tasks_has_begun(s, request)) {
		request->late = true;
		loop_timer_set(s->loop, &request->timer,
		    COPY_WHOLE_MS - COPY_FIRST_MS, on_late, request);
	} else if (request->running) {
		request->late = true;
		tasks_kill_request(s, request);
	} else {
		(void)err_set(&no.err, ERR_UNAVAILABLE,
		    "too many copies are asked for");
		request_end(request, &no);
	}
}

static void
watch_copy(struct request *request)
{
	struct snapshotter *s = request->s;

	loop_add(s->loop, request->fd, EPOLLIN, on_hangup, request);
	request->watched = true;
	loop_timer_set(s->loop, &request->timer, COPY_FIRST_MS, on_late,
	    request);
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
	request->watched = false;
	loop_timer_clear(s->loop, &request->timer);
	if (len > 0 && take_question(request, packet, (size_t)len)) {
		if (request->kind == REQUEST_COPY)
			watch_copy(request);
		snapshotter_look(s);
		return;
	}
	request->kind = REQUEST_FORGET; /* there is no new one */
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
	const struct listener *listener = arg;
	struct snapshotter *s = listener->s;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct request *request;

	(void)events;
	if (client < 0)
		return;
	if (s->request_count - s->copy_count == REQUESTS_MAX ||
	    (listener->api && s->copy_count == COPIES_ASKED) ||
	    s->stopping_ms != 0) {
		(void)close(client);
		return;
	}
	request = xcalloc(1, sizeof(*request));
	request->s = s;
	request->fd = client;
	request->watched = true;
	request->api = listener->api;
	TAILQ_INSERT_TAIL(&s->requests, request, link);
	s->request_count++;
	s->copy_count += request->api;
	loop_add(s->loop, client, EPOLLIN, on_question, request);
	loop_timer_set(s->loop, &request->timer, ASK_MS, on_silence, request);
}

/* In a folder whose group is a program's, the socket is its group's, too. */
static int
listen_at(struct snapshotter *s, const char *name, bool api, struct err *err)
{
	struct listener *listener;
	auto_free char *path = config_state_path(s->config, name);
	auto_free char *copy = xstrdup(path);
	int fd;

	if (fd_make_dirs(dirname(copy), 0750, err) != 0)
		return -1;
	fd = fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK, 0660, err);
	if (fd < 0)
		return -1;
	listener = xcalloc(1, sizeof(*listener)); /* as long as we live */
	*listener = (struct listener){ .s = s, .api = api };
	loop_add(s->loop, fd, EPOLLIN, on_connection, listener);
	return 0;
}

int
requests_open(struct snapshotter *s, struct err *err)
{
	if (listen_at(s, SOCKET_SNAPSHOT_WORKER, false, err) != 0 ||
	    listen_at(s, SOCKET_SNAPSHOT_CTL, false, err) != 0)
		return -1;
	return s->copies == NULL ? 0 :
				   listen_at(s, SOCKET_SNAPSHOT_API, true, err);
}
