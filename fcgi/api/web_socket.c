/* SPDX-License-Identifier: MIT */
#include "api/web_socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "contract/json.h"

#include "base/basics.h"

#define HEAD_MS 5000
/* Time after the last word for a slow reader to read it and close. */
#define LINGER_MS 2000
/* A run's output is bounded; each byte of it may come in a frame of its own. */
#define OUT_MAX ((size_t)16 << 20)
#define TEXT_MAX ((size_t)2 << 20) /* of a message */
/* Pings that come while this waits are not answered. */
#define PONGS_MAX 65536

void
web_socket_open(struct web_socket *s, int fd)
{
	*s = (struct web_socket){ .fd = fd, .out = BUF_INIT(OUT_MAX) };
	socket_reader_init(&s->in);
}

void
web_socket_release(struct web_socket *s)
{
	socket_reader_release(&s->in);
	buf_release(&s->out);
}

/* ---- sending ---- */

void
web_socket_flush(struct web_socket *s)
{
	while (!s->gone && s->out.len > 0) {
		ssize_t n = send(s->fd, s->out.data, s->out.len,
		    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			s->gone = true;
		else
			buf_drop(&s->out, (size_t)n);
	}
	buf_reset(&s->out);
}

void
web_socket_say(struct web_socket *s, json_t *message)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);

	jtext_add(&text, message, JSON_COMPACT);
	json_decref(message);
	if (s->closing)
		return;
	socket_add(&s->out, SOCKET_TEXT, buf_str(&text), text.len);
	s->gone = s->gone || text.overflow || s->out.overflow;
	web_socket_flush(s);
}

void
web_socket_goodbye(struct web_socket *s, int code, const char *reason)
{
	if (s->closing)
		return;
	socket_add_close(&s->out, code, reason);
	s->closing = true;
	web_socket_flush(s);
}

/* ---- receiving ---- */

void
web_socket_receive(struct web_socket *s)
{
	char piece[SOCKET_PIECE];
	ssize_t n = recv(s->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n > 0)
		socket_reader_add(&s->in, piece, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		s->gone = true;
}

bool
web_socket_next(struct web_socket *s)
{
	while (!s->gone && !s->closing) {
		switch (socket_next(&s->in)) {
		case SOCKET_MESSAGE:
			return true;
		case SOCKET_PING:
			if (s->out.len < PONGS_MAX)
				socket_add(&s->out, SOCKET_PONG, s->in.control,
				    s->in.control_len);
			web_socket_flush(s);
			break;
		case SOCKET_CLOSE:
			s->over = true;
			web_socket_goodbye(s, 1000, "");
			break;
		case SOCKET_FAULT:
			web_socket_goodbye(s, s->in.code, "");
			break;
		case SOCKET_MORE:
			return false;
		}
	}
	return false;
}

bool
web_socket_wait(struct web_socket *s, int64_t until_ms)
{
	struct pollfd p = { .fd = s->fd,
		.events = (short)(POLLIN | (s->out.len > 0 ? POLLOUT : 0)) };

	/* a client that never stops sending has no more time than others */
	while (!s->gone && clock_monotonic_ms() < until_ms) {
		int n = poll(&p, 1, clock_poll_timeout(until_ms));

		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
	return false;
}

bool
web_socket_read_head(struct web_socket *s, struct socket_head *head)
{
	int64_t until_ms = clock_monotonic_ms() + HEAD_MS;
	struct buf *in = &s->in.in;
	ssize_t len;

	while ((len = socket_head_read(head, buf_str(in), in->len)) == 0) {
		if (!web_socket_wait(s, until_ms))
			return false;
		web_socket_receive(s);
	}
	if (len > 0)
		buf_drop(in, (size_t)len);
	return len > 0;
}

void
web_socket_linger(struct web_socket *s)
{
	int64_t until_ms = clock_monotonic_ms() + LINGER_MS;
	enum socket_event event;

	web_socket_flush(s);
	while ((s->out.len > 0 || (s->closing && !s->over)) &&
	    web_socket_wait(s, until_ms)) {
		web_socket_flush(s);
		web_socket_receive(s);
		do
			event = socket_next(&s->in);
		while (event == SOCKET_MESSAGE || event == SOCKET_PING);
		/* a client that speaks no WebSocket hangs up, or its time is
		 * over */
		s->over = s->over || event == SOCKET_CLOSE;
	}
}
