/* SPDX-License-Identifier: MIT */
/*
 * /api/v2/connect: the WebSocket of Piston's contract.  FastCGI has no way to
 * change the protocol of a connection, so nginx hands these on as HTTP, to a
 * socket of their own.  A process serves one connection, which has one run: its
 * standard input is a pipe that is filled here with what the client types.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/piston.h"
#include "api/run.h"
#include "api/routes.h"
#include "contract/piston/piston_answer.h"
#include "server/serve.h"

#include "base/basics.h"

#define HEAD_MS 5000
/* Time after the last word for a slow reader to read it and close. */
#define LINGER_MS 2000
/* A run's output is bounded; each byte of it may come in a frame of its own. */
#define OUT_MAX ((size_t)16 << 20)
/* Pings that come while this waits are not answered. */
#define PONGS_MAX 65536
#define INIT_MS 1000	     /* of the contract */
#define TYPED_MAX (64 << 10) /* that nobody has read; then the client waits */
#define PIECE 65536

/* ---- the connection ---- */

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

/* Send what there is room for. */
static void
web_socket_flush(struct web_socket *s)
{
	while (!s->gone && s->sent < s->out.len) {
		ssize_t n = send(s->fd, s->out.data + s->sent,
		    s->out.len - s->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			s->gone = true;
		else
			s->sent += (size_t)n;
	}
	buf_reset(&s->out);
	s->sent = 0;
}

/* Send a message. */
static void
web_socket_say(struct web_socket *s, const struct buf *text)
{
	if (s->closing)
		return;
	socket_add_text(&s->out, buf_str(text), text->len);
	if (s->out.overflow)
		s->gone = true;
	web_socket_flush(s);
}

/* Send the last word; after that nothing is sent. */
static void
web_socket_goodbye(struct web_socket *s, int code, const char *reason)
{
	if (s->closing)
		return;
	socket_add_close(&s->out, code, reason);
	s->closing = true;
	web_socket_flush(s);
}

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
				socket_add_pong(&s->out,
				    buf_str(&s->in.control), s->in.control.len);
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

/* Has the client said its last word?  All other messages are dropped. */
static bool
hears_goodbye(struct web_socket *s)
{
	enum socket_event event = SOCKET_MORE;

	web_socket_receive(s);
	do
		event = socket_next(&s->in);
	while (event == SOCKET_MESSAGE || event == SOCKET_PING);
	/* a client that speaks no WebSocket hangs up, or its time is over */
	return s->gone || event == SOCKET_CLOSE;
}

/* All is said: wait, for a moment, until it is read and the client hangs up or
 * says that it will.  Were we to hang up first, what the client has not read
 * would be lost. */
static void
web_socket_linger(struct web_socket *s)
{
	int64_t until_ms = clock_monotonic_ms() + LINGER_MS;

	web_socket_flush(s);
	while ((s->out.len > 0 || (s->closing && !s->over)) &&
	    web_socket_wait(s, until_ms)) {
		web_socket_flush(s);
		s->over = hears_goodbye(s) || s->over;
	}
}

bool
web_socket_read_head(struct web_socket *s, struct socket_head *head)
{
	int64_t until_ms = clock_monotonic_ms() + HEAD_MS;
	size_t len;
	bool good;

	while ((len = socket_head_end(buf_str(&s->in.in), s->in.in.len)) == 0) {
		if (s->in.in.len > SOCKET_HEAD_MAX ||
		    !web_socket_wait(s, until_ms))
			return false;
		web_socket_receive(s);
	}
	good = len <= SOCKET_HEAD_MAX &&
	    socket_head_read(head, buf_str(&s->in.in), len);
	buf_drop(&s->in.in, len);
	return good;
}

struct connection {
	struct api_app *app;
	struct web_socket s;
	struct http_request req; /* for the gate and the run */
	/* of its run */
	struct piston_request request;
	struct api_run run;
	struct piston_output output; /* not sent yet */
	int reader;		     /* of the pipe; both -1: closed */
	int writer;
	struct buf typed;
	size_t written;
	bool eof;
	struct pollfd others[CONVERSATION_OTHERS];
};

/* ---- the run: to the client ---- */

/* Releases the refusal. */
static void
say_error(struct connection *x, struct piston_refusal *refusal)
{
	auto_buf struct buf text = BUF_INIT(PISTON_REFUSAL_MAX);

	piston_say_error(&text, refusal);
	buf_release(&refusal->body);
	web_socket_say(&x->s, &text);
	web_socket_goodbye(&x->s, 4002, "Notified Error");
}

static void
say_trouble(struct connection *x, const char *text)
{
	struct piston_refusal refusal;

	(void)piston_refuse(&refusal, 500, "%s", text);
	say_error(x, &refusal);
}

/* ---- from the client ---- */

/* A message that is no request. */
static void
hear_said(struct connection *x, enum piston_message kind,
    const struct piston_said *said, bool running)
{
	if (kind == PISTON_OTHER)
		return;
	if (!running)
		web_socket_goodbye(&x->s, 4003, "Not yet initialized");
	else if (kind == PISTON_INIT)
		web_socket_goodbye(&x->s, 4000, "Already Initialized");
	else if (kind == PISTON_SIGNAL && said->number == 0)
		web_socket_goodbye(&x->s, 4005, "Invalid signal");
	else if (kind == PISTON_SIGNAL)
		cell_signal(x->run.c.cell, said->number);
	else if (!said->is_input)
		web_socket_goodbye(&x->s, 4004, "Can only write to stdin");
	else if (!x->eof) {
		buf_drop(&x->typed, x->written);
		x->written = 0;
		buf_add(&x->typed, said->text, said->len);
		x->eof = said->eof;
	}
}

/* ---- while it runs ---- */

/* Into the pipe with what was typed, as far as it goes. */
static void
type(struct connection *x)
{
	while (x->writer >= 0 && x->written < x->typed.len) {
		ssize_t n = write(x->writer, x->typed.data + x->written,
		    x->typed.len - x->written);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			cleanup_close(&x->writer);
		else
			x->written += (size_t)n;
	}
	buf_reset(&x->typed);
	x->written = 0;
	if (x->eof)
		cleanup_close(&x->writer);
}

static bool
is_full(const struct connection *x)
{
	return x->typed.len - x->written >= TYPED_MAX;
}

/* Descriptors to wait for beside the cell.  A client that types faster than the
 * run reads must wait, too. */
static void
set_others(struct connection *x)
{
	x->others[0] = (struct pollfd){ .fd = x->s.fd,
		.events = (short)((is_full(x) ? 0 : POLLIN) |
		    (x->s.out.len > 0 ? POLLOUT : 0)) };
	x->others[1] = (struct pollfd){ .fd = x->typed.len > 0 ? x->writer : -1,
		.events = POLLOUT };
}

/* The messages that are here, while there is room for what they say. */
static void
hear_messages(struct connection *x)
{
	struct piston_refusal refusal;
	struct piston_said said;

	while (!is_full(x) && web_socket_next(&x->s)) {
		enum piston_message kind = piston_hear(&said,
		    buf_str(&x->s.in.message), x->s.in.message.len, &refusal);

		if (kind == PISTON_WRONG) {
			say_error(x, &refusal);
			break;
		}
		hear_said(x, kind, &said, true);
		jtree_release(&said.doc);
		type(x);
	}
}

/* Before the cell is waited for again. */
static void
connect_settle(struct connection *x)
{
	x->run.c.hang_up = x->s.gone || x->s.closing;
	set_others(x);
}

static void
connect_other_event(void *arg)
{
	struct connection *x = ((struct api_run *)arg)->arg;

	web_socket_flush(&x->s);
	type(x);
	hear_messages(x);
	if (!is_full(x)) {
		web_socket_receive(&x->s);
		hear_messages(x);
	}
	connect_settle(x);
}

/* Send the output that has come. */
static void
say_output(struct connection *x)
{
	for (int i = 0; i < 2; i++) {
		auto_buf struct buf message = BUF_INIT(20 * PIECE);
		struct buf *text = &x->output.streams[i].text;

		if (text->len == 0)
			continue;
		piston_say_data(&message, i + 1, buf_str(text), text->len);
		web_socket_say(&x->s, &message);
		buf_reset(text);
	}
	buf_reset(&x->output.all);
}

static void
connect_started(struct api_run *run)
{
	struct connection *x = run->arg;
	auto_buf struct buf message = BUF_INIT(256);

	piston_say_stage(&message);
	web_socket_say(&x->s, &message);
	/* The run alone has the reader: when it closes that, we notice. */
	cleanup_close(&x->reader);
	/* Messages that came with the request cause no event. */
	hear_messages(x);
	connect_settle(x);
}

static void
connect_output(struct api_run *run, const struct cell_event *event)
{
	struct connection *x = run->arg;

	if (!piston_output_add(&x->output, event->stream, event->data,
		event->len))
		run->c.enough = true;
	say_output(x);
	connect_settle(x);
}

static void
connect_refuse(struct api_run *run, int status, const char *text)
{
	(void)status;
	say_trouble(run->arg, text);
}

static void
connect_answer(struct api_run *run)
{
	struct connection *x = run->arg;
	auto_buf struct buf message = BUF_INIT(256);
	struct piston_end end;

	piston_output_end(&x->output);
	say_output(x);
	piston_end(&end, &x->request, &run->result, x->output.full);
	piston_say_exit(&message, &end);
	web_socket_say(&x->s, &message);
	web_socket_goodbye(&x->s, 4999, "Job Completed");
}

static const struct run_error connect_errors[] = {
	{ 0, false, 500, "The files or arguments cannot be taken" },
};

static const struct run_front connect_front = {
	.kind = API_CONNECT,
	.started = connect_started,
	.output = connect_output,
	.answer = connect_answer,
	.errors = connect_errors,
	.refuse = connect_refuse,
};

static void
run_job(struct connection *x)
{
	auto_buf struct buf message = BUF_INIT(1024);
	struct cell_request cell;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0) {
		log_err("pipe: %m");
		say_trouble(x, "Internal Server Error");
		return;
	}
	x->reader = ends[0];
	x->writer = ends[1];
	(void)fcntl(x->writer, F_SETFL, O_NONBLOCK);
	piston_say_runtime(&message, x->request.runtime);
	web_socket_say(&x->s, &message);
	piston_fill(&cell, &x->request);
	cell.input = NULL;
	cell.input_len = 0;
	cell.live = true;
	cell.live_fd = x->reader;
	x->run = (struct api_run){ .front = &connect_front,
		.arg = x,
		.app = x->app,
		.req = &x->req,
		.request = &cell,
		.c = { .others = x->others,
		    .other_count = CONVERSATION_OTHERS,
		    .other = connect_other_event } };
	piston_output_init(&x->output);
	set_others(x);
	api_run(&x->run, x->request.runtime->interpreter);
	cleanup_close(&x->reader);
	cleanup_close(&x->writer);
	api_run_answer(&x->run);
	piston_output_release(&x->output);
}

/* The first message that means something. */
static void
hear_init(struct connection *x, struct piston_said *said)
{
	const struct piston_limits limits = piston_limits(x->app);
	struct piston_runtimes all;
	struct piston_refusal refusal;

	if (!piston_runtimes(&all, x->app, &x->req, false)) {
		jtree_release(&said->doc);
		say_trouble(x, REPLY_BUSY);
		return;
	}
	x->request = (struct piston_request){ .doc = said->doc };
	if (!piston_accept(&x->request, &limits, all.items, all.count,
		&refusal)) {
		say_error(x, &refusal);
		return;
	}
	run_job(x);
	jtree_release(&x->request.doc);
}

/* ---- a connection ---- */

/* Until it says what to run. */
static void
talk(struct connection *x)
{
	int64_t until_ms = clock_monotonic_ms() + INIT_MS;
	struct piston_refusal refusal;
	struct piston_said said;

	while (!x->s.gone && !x->s.closing) {
		enum piston_message kind;

		if (!web_socket_next(&x->s)) {
			if (x->s.gone || x->s.closing)
				return;
			if (!web_socket_wait(&x->s, until_ms))
				web_socket_goodbye(&x->s, 4001,
				    "Initialization Timeout");
			else
				web_socket_receive(&x->s);
			continue;
		}
		kind = piston_hear(&said, buf_str(&x->s.in.message),
		    x->s.in.message.len, &refusal);
		if (kind == PISTON_WRONG) {
			say_error(x, &refusal);
			return;
		}
		if (kind == PISTON_INIT) {
			hear_init(x, &said);
			return;
		}
		hear_said(x, kind, &said, false);
		jtree_release(&said.doc);
	}
}

/* Is it a WebSocket that is asked for?  False: it was answered. */
static bool
is_upgrade(struct connection *x, const struct socket_head *head)
{
	if (!api_serves_connect(x->app) ||
	    strcmp(head->path, "/api/v2/connect") != 0 ||
	    strcasecmp(head->upgrade, "websocket") != 0) {
		reply_refuse(&x->req, 404, NULL, REPLY_NOT_FOUND);
		return false;
	}
	if (strcmp(head->version, "13") != 0) {
		reply_refuse(&x->req, 426, "Sec-WebSocket-Version: 13\r\n",
		    "Upgrade Required");
		return false;
	}
	if (head->key[0] == '\0') {
		reply_refuse(&x->req, 400, NULL, "Bad Request");
		return false;
	}
	return true;
}

static void
connect_serve(struct connection *x, const struct socket_head *head)
{
	char answer[SOCKET_ANSWER_LEN + 1];

	if (!is_upgrade(x, head) ||
	    !gate_enter(x->app, &x->req, GATE_CELL, gate_by_token))
		return;
	socket_answer(head->key, answer);
	buf_addf(&x->s.out,
	    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	    "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
	    answer);
	web_socket_flush(&x->s);
	x->req.status = 101;
	x->req.begun = true;
	talk(x);
	gate_leave(x->app);
}

void
api_connect(void *app, int fd)
{
	struct connection x = { .app = app,
		.typed = BUF_INIT(SOCKET_MESSAGE_MAX + TYPED_MAX),
		.reader = -1,
		.writer = -1 };
	int64_t started_us = clock_monotonic_us();
	struct socket_head head;
	char authorization[sizeof(head.authorization) + 32];
	char foreign[sizeof(head.foreign) + 32];
	char *params[] = { (char[]){ "DOCUMENT_URI=/api/v2/connect" }, foreign,
		NULL, NULL };

	web_socket_open(&x.s, fd);
	if (web_socket_read_head(&x.s, &head)) {
		(void)snprintf(authorization, sizeof(authorization),
		    "HTTP_AUTHORIZATION=%s", head.authorization);
		(void)snprintf(foreign, sizeof(foreign), "INLINE_FOREIGN=%s",
		    head.foreign);
		if (head.authorization[0] != '\0')
			params[2] = authorization;
		http_raw(&x.req, fd, params);
		metrics_change(&x.app->metrics, METRICS_REQUESTS, 1);
		connect_serve(&x, &head);
		web_socket_linger(&x.s);
		metrics_change(&x.app->metrics, METRICS_REQUESTS, -1);
		metrics_request(&x.app->metrics, api_route_connect,
		    x.req.status, clock_monotonic_us() - started_us, 0,
		    x.req.sent);
	}
	web_socket_release(&x.s);
	buf_release(&x.typed);
}
