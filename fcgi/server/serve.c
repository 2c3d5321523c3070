/* SPDX-License-Identifier: MIT */
#include "server/serve.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fastcgi.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/text.h"

/* Longest Content-Length that is a number to us; each program has its own,
 * smaller, limit. */
#define LENGTH_MAX ((int64_t)1 << 40)

/* Neither a head nor a short answer fills libfcgi's buffer (8 KiB): it goes out
 * in http_finish(), and nothing before it can stall. */
#define BUFFERED_MAX 4096

#define PIECE 65536 /* bytes that are read or written by one call */

/* Data longer than libfcgi's buffer is not copied through it, 8 KiB at a time.
 * It is sent from where it lies, in records of the largest size (a multiple of
 * eight, as the protocol advises). */
#define LONG 16384
#define RECORD (FCGI_MAX_LENGTH & ~7)

/* In haste a stalling peer is dropped by so much earlier. */
#define HASTE_MS 100

/* Time to answer the requests in the queue after SIGTERM. */
#define DRAIN_MS 2000

const char *
http_status(int status)
{
	static const char *const lines[] = { "200 OK", "201 Created",
		"202 Accepted", "204 No Content", "307 Temporary Redirect",
		"400 Bad Request", "401 Unauthorized", "403 Forbidden",
		"404 Not Found", "405 Method Not Allowed", "409 Conflict",
		"411 Length Required", "413 Content Too Large",
		"415 Unsupported Media Type", "422 Unprocessable Content",
		"426 Upgrade Required", "429 Too Many Requests",
		"500 Internal Server Error", "501 Not Implemented",
		"503 Service Unavailable", "504 Gateway Timeout",
		"507 Insufficient Storage" };
	size_t i = 0;

	while (strtol(lines[i], NULL, 10) != status) {
		i++;
		assert(i < sizeof(lines) / sizeof(lines[0]));
	}
	return lines[i];
}

/* The signal interrupts a system call; the handler does nothing. */
static void
on_alarm(int number)
{
	(void)number;
}

/*
 * libfcgi reads and writes blocking, and takes EINTR for the end of the
 * connection.  So a timer whose signal does nothing is enough to get rid of a
 * peer that stalls.  It repeats, since a signal may fall between two system
 * calls.
 */
static void
guard_set(int64_t stall_ms)
{
	struct itimerval timer = {
		.it_value.tv_sec = stall_ms / 1000,
		.it_interval.tv_sec = stall_ms / 1000,
	};

	(void)setitimer(ITIMER_REAL, &timer, NULL);
}

/* When it was set and not stopped yet, for the hasty; 0: it was not. */
static int64_t guard_since_ms;

/* Before calls of libfcgi. */
static void
guard_start(const struct http_request *req)
{
	int64_t now_ms = req->hasty ? clock_monotonic_ms() : 0;

	if (guard_since_ms != 0 && now_ms - guard_since_ms < HASTE_MS)
		return;
	guard_set(req->stall_ms);
	guard_since_ms = now_ms;
}

static void
guard_stop(const struct http_request *req)
{
	if (!req->hasty)
		guard_set(0);
}

void
http_rest(void)
{
	if (guard_since_ms != 0)
		guard_set(0);
	guard_since_ms = 0;
}

void
http_prepare(void)
{
	if (FCGX_Init() != 0)
		log_fatal(1, "libfcgi does not start");
}

void
http_init(struct http_request *req, int listen_fd)
{
	struct sigaction action = { .sa_handler = on_alarm };

	memset(req, 0, sizeof(*req));
	(void)sigaction(SIGALRM, &action, NULL); /* no SA_RESTART: on purpose */
	http_prepare();
	if (FCGX_InitRequest(&req->fcgi, listen_fd, 0) != 0)
		log_fatal(1, "libfcgi does not start");
}

const char *
http_param(const struct http_request *req, const char *name)
{
	return FCGX_GetParam(name, req->fcgi.envp);
}

static const char *
param_or_empty(const struct http_request *req, const char *name)
{
	const char *value = http_param(req, name);

	return value == NULL ? "" : value;
}

/* All but the timer's habit and libfcgi's own is new. */
bool
http_accept(struct http_request *req)
{
	const char *length;
	int result;

	*req = (struct http_request){
		.length = HTTP_NO_LENGTH,
		.stall_ms = HTTP_STALL_MS,
		.hasty = req->hasty,
		.fcgi = req->fcgi,
	};
	guard_start(req);
	result = FCGX_Accept_r(&req->fcgi);
	guard_stop(req);
	if (result != 0 && result != -EAGAIN)
		log_fatal(1, "accept: %s", strerror(-result));
	if (result != 0)
		return false;
	/* libfcgi would leave the connection open, for the same struct's next
	 * request: there is none, where a request is held and freed */
	req->fcgi.keepConnection = 0;
	req->method = param_or_empty(req, "REQUEST_METHOD");
	req->path = http_param(req, "DOCUMENT_URI");
	if (req->path == NULL)
		req->path = param_or_empty(req, "SCRIPT_NAME");
	req->query = param_or_empty(req, "QUERY_STRING");
	length = param_or_empty(req, "CONTENT_LENGTH");
	if (length[0] != '\0' &&
	    !text_parse_int(length, 0, LENGTH_MAX, &req->length))
		req->length = HTTP_BAD_LENGTH;
	req->unread = req->length > 0 ? req->length : 0;
	req->gate = http_param(req, "INLINE_GATE") != NULL;
	return true;
}

bool
http_says(const struct http_request *req, const char *name)
{
	return strcmp(param_or_empty(req, name), "1") == 0;
}

bool
http_is_from_node(const struct http_request *req)
{
	return http_says(req, "INLINE_FROM_NODE");
}

int64_t
http_param_ms(const struct http_request *req, const char *name)
{
	int64_t ms;

	return text_parse_thousandths(param_or_empty(req, name), &ms) ? ms : -1;
}

int64_t
http_received_ms(const struct http_request *req)
{
	int64_t sent_ms = http_param_ms(req, "INLINE_SENT");
	int64_t took_ms = http_param_ms(req, "INLINE_TOOK");

	return sent_ms < 0 || took_ms < 0 || took_ms > sent_ms ?
	    -1 :
	    sent_ms - took_ms;
}

int64_t
http_waited_us(const struct http_request *req)
{
	int64_t sent_ms = http_param_ms(req, "INLINE_SENT");
	int64_t waited_ms = clock_wall_ms() - sent_ms;

	if (sent_ms < 0)
		return -1;
	return waited_ms > 0 ? waited_ms * 1000 : 0;
}

ssize_t
http_read(struct http_request *req, void *data, size_t cap)
{
	int n;

	if (req->unread == 0)
		return 0;
	if (cap > PIECE)
		cap = PIECE;
	if ((int64_t)cap > req->unread)
		cap = (size_t)req->unread;
	guard_start(req);
	n = FCGX_GetStr(data, (int)cap, req->fcgi.in);
	guard_stop(req);
	if (n <= 0) {
		req->failed = true;
		return -1;
	}
	req->unread -= n;
	return n;
}

bool
http_read_all(struct http_request *req, struct buf *body)
{
	while (req->unread > 0) {
		size_t want = req->unread < PIECE ? (size_t)req->unread : PIECE;
		char *room = buf_reserve(body, want);
		ssize_t n = room == NULL ? -1 : http_read(req, room, want);

		if (n < 0)
			return false;
		buf_commit(body, (size_t)n);
	}
	return true;
}

void
http_allow_slow_reader(struct http_request *req, int64_t whole_ms)
{
	req->stall_ms = HTTP_READER_MS;
	req->whole_ms = whole_ms;
}

/* The lines of a head, but for the empty one that ends it. */
static void
put_head(struct http_request *req, int status, const char *type,
    const char *headers)
{
	req->begun = true;
	req->status = status;
	if (req->whole_ms > 0)
		req->until_ms = clock_monotonic_ms() + req->whole_ms;
	(void)FCGX_FPrintF(req->fcgi.out, "Status: %s\r\n",
	    http_status(status));
	if (type != NULL)
		(void)FCGX_FPrintF(req->fcgi.out, "Content-Type: %s\r\n", type);
	if (headers != NULL)
		(void)FCGX_FPrintF(req->fcgi.out, "%s", headers);
}

void
http_begin(struct http_request *req, int status, const char *type,
    const char *headers)
{
	put_head(req, status, type, headers);
	(void)FCGX_FPrintF(req->fcgi.out, "\r\n");
}

/* False: the peer is gone, or the timer's signal has interrupted the call. */
static bool
put_all(const struct http_request *req, const void *data, size_t len)
{
	const char *bytes = data;

	while (len > 0) {
		ssize_t n = send(http_fd(req), bytes, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

/* A piece of the answer as a record of its own; libfcgi's buffer is empty. */
static bool
put_record(const struct http_request *req, const char *bytes, size_t len)
{
	FCGI_Header head = {
		.version = FCGI_VERSION_1,
		.type = FCGI_STDOUT,
		.requestIdB1 = (unsigned char)(req->fcgi.requestId >> 8),
		.requestIdB0 = (unsigned char)req->fcgi.requestId,
		.contentLengthB1 = (unsigned char)(len >> 8),
		.contentLengthB0 = (unsigned char)len,
	};

	return put_all(req, &head, sizeof(head)) && put_all(req, bytes, len);
}

static bool
put_piece(const struct http_request *req, const char *bytes, size_t len,
    bool whole)
{
	if (whole)
		return FCGX_FFlush(req->fcgi.out) == 0 &&
		    put_record(req, bytes, len);
	return FCGX_PutStr(bytes, (int)len, req->fcgi.out) == (int)len;
}

/* Only what leaves libfcgi's buffer can stall. */
void
http_write(struct http_request *req, const void *data, size_t len)
{
	const char *bytes = data;

	req->sent += (int64_t)len;
	while (len > 0 && !req->failed) {
		size_t piece = len < RECORD ? len : RECORD;
		bool guarded = req->sent > BUFFERED_MAX;

		if (guarded)
			guard_start(req);
		if (!put_piece(req, bytes, piece, piece >= LONG) ||
		    (guarded && req->until_ms > 0 &&
			clock_monotonic_ms() > req->until_ms))
			req->failed = true;
		if (guarded)
			guard_stop(req);
		bytes += piece;
		len -= piece;
	}
}

bool
http_flush(struct http_request *req)
{
	guard_start(req);
	if (FCGX_FFlush(req->fcgi.out) != 0)
		req->failed = true;
	guard_stop(req);
	return !req->failed;
}

/* nginx takes 204 and 403 for an answer to its question, and drops the body: it
 * makes the refusal of these headers.  Our texts are one line. */
static void
put_verdict(struct http_request *req, int status, const char *type,
    const char *headers, const char *body, size_t len)
{
	if (memchr(body, '\n', len) != NULL || len > BUFFERED_MAX)
		len = 0;
	put_head(req, 403, NULL, headers);
	req->status = status;
	(void)FCGX_FPrintF(req->fcgi.out,
	    "Inline-Status: %d\r\nInline-Type: %s\r\nInline-Refusal: ", status,
	    type == NULL ? "" : type);
	http_write(req, body, len);
	(void)FCGX_FPrintF(req->fcgi.out, "\r\n\r\n");
}

/* The other nginx makes an answer of this header; JSON of ours is one line. */
static void
put_relayed(struct http_request *req, const char *body, size_t len)
{
	bool good = memchr(body, '\n', len) == NULL;

	put_head(req, good ? 200 : 500, NULL, "Inline-Answer: ");
	if (good)
		http_write(req, body, len);
	(void)FCGX_FPrintF(req->fcgi.out, "\r\n\r\n");
}

void
http_raw(struct http_request *req, int fd, char **params)
{
	*req = (struct http_request){
		.raw = true, .method = "GET", .path = "", .query = ""
	};
	req->fcgi.ipcFd = fd;
	req->fcgi.envp = params;
	req->path = param_or_empty(req, "DOCUMENT_URI");
}

/* All of it at once: a short answer has room in a socket's buffer. */
static void
answer_raw(struct http_request *req, int status, const char *type,
    const char *headers, const char *body, size_t len)
{
	auto_buf struct buf text = BUF_INIT(len + 4096);

	req->begun = true;
	req->status = status;
	req->sent = (int64_t)len;
	buf_addf(&text, "HTTP/1.1 %s\r\n", http_status(status));
	if (type != NULL)
		buf_addf(&text, "Content-Type: %s\r\n", type);
	if (headers != NULL)
		buf_adds(&text, headers);
	buf_addf(&text, "Content-Length: %zu\r\nConnection: close\r\n\r\n",
	    len);
	buf_add(&text, body, len);
	if (send(http_fd(req), buf_str(&text), text.len,
		MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)text.len)
		req->failed = true;
}

void
http_answer(struct http_request *req, int status, const char *type,
    const char *headers, const void *body, size_t len)
{
	if (req->raw) {
		answer_raw(req, status, type, headers, body, len);
		return;
	}
	if (req->relayed && status == 200 && len > 0) {
		put_relayed(req, body, len);
		return;
	}
	if (req->gate && status >= 400) {
		put_verdict(req, status, type, headers, body, len);
		return;
	}
	put_head(req, status, type, headers);
	(void)FCGX_FPrintF(req->fcgi.out, "Content-Length: %lu\r\n\r\n",
	    (unsigned long)len);
	http_write(req, body, len);
}

int
http_fd(const struct http_request *req)
{
	return req->fcgi.ipcFd;
}

bool
http_client_gone(const struct http_request *req)
{
	struct pollfd p = { .fd = http_fd(req), .events = POLLRDHUP };

	return req->failed || p.fd < 0 || poll(&p, 1, 0) > 0;
}

void
http_finish(struct http_request *req)
{
	if (http_fd(req) < 0)
		return;
	guard_start(req);
	/* libfcgi waits up to 2 s for the peer to close its end first, so that
	 * what it has not read yet does not take the answer with it.  That is
	 * a wait for nginx after each answer: only where the peer may not have
	 * said all that it will. */
	if (req->failed)
		(void)shutdown(http_fd(req), SHUT_RDWR);
	else if (req->unread == 0 && FCGX_GetChar(req->fcgi.in) == EOF)
		(void)FCGX_Detach(&req->fcgi);
	FCGX_Finish_r(&req->fcgi);
	guard_stop(req);
}

/* ---- a child ---- */

/* The requests that are answered together. */
struct batch {
	const struct serve *serve;
	struct http_request **requests;
	size_t count;
	size_t most;
	int listen_fd;
	void (*plain)(void *arg, int fd); /* of the socket */
	bool more; /* others waited when it was answered */
	int signal_fd;
	struct loop *loop;
	struct loop_timer *due;	  /* of held requests */
	struct loop_timer *again; /* of the others that wait */
};

/* Make room for the index-th request. */
static void
batch_renew(struct batch *batch, size_t index)
{
	struct http_request *req = xcalloc(1, sizeof(*req));

	http_init(req, batch->listen_fd);
	req->hasty = batch->serve->settle != NULL;
	batch->requests[index] = req;
}

/* Accept a request.  False: there is none. */
static bool
batch_accept(struct batch *batch)
{
	struct http_request *req = batch->requests[batch->count];

	if (!http_accept(req))
		return false;
	if (batch->serve->answer(batch->serve->arg, req, batch->count))
		batch->count++;
	else
		http_finish(req);
	return true;
}

/* Answer together the requests that have come.  False: there were none. */
static bool
serve_some(struct batch *batch)
{
	const struct serve *serve = batch->serve;
	int64_t until_ms = clock_monotonic_ms() + SERVE_GATHER_MS;
	struct pollfd others = { .fd = batch->listen_fd, .events = POLLIN };
	bool some = batch_accept(batch);

	while (some && batch->count < batch->most &&
	    clock_monotonic_ms() < until_ms && batch_accept(batch))
		;
	http_rest();
	if (serve->settle != NULL && batch->count > 0)
		serve->settle(serve->arg, batch->count);
	for (size_t i = 0; i < batch->count; i++)
		if (batch->requests[i]->held)
			batch_renew(batch, i);
		else
			http_finish(batch->requests[i]);
	http_rest();
	batch->count = 0;
	batch->more = some && serve->after != NULL && poll(&others, 1, 0) > 0;
	if (serve->after != NULL)
		serve->after(serve->arg, batch->more);
	return some;
}

/* Serve a client that does not speak FastCGI.  A process that cannot accept
 * ends, as in http_accept(). */
static void
serve_plain(const struct batch *batch)
{
	auto_close int fd = accept4(batch->listen_fd, NULL, NULL,
	    SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		batch->plain(batch->serve->arg, fd);
	/* another one may have been faster, or the client is gone */
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		log_fatal(1, "accept4: %m");
}

static void serve_held(void *arg);

/* Wait for the time at which held requests are due. */
static void
serve_set_due(struct batch *batch)
{
	const struct serve *serve = batch->serve;
	int64_t due_ms = serve->due_ms != NULL ? serve->due_ms(serve->arg) :
						 INT64_MAX;

	loop_timer_clear(batch->loop, &batch->due);
	if (due_ms != INT64_MAX)
		loop_timer_set(batch->loop, &batch->due,
		    due_ms - clock_monotonic_ms(), serve_held, batch);
}

/* The descriptor of held requests is ready, or their time has come. */
static void
serve_held(void *arg)
{
	struct batch *batch = arg;

	batch->serve->events(batch->serve->arg);
	serve_set_due(batch);
}

/* Requests have come, or are left.  Held requests whose answer has come go
 * first. */
static void
serve_ready(void *arg)
{
	struct batch *batch = arg;

	if (batch->serve->events != NULL)
		batch->serve->events(batch->serve->arg);
	if (batch->plain != NULL)
		serve_plain(batch);
	else
		(void)serve_some(batch);
	if (batch->more)
		loop_timer_set(batch->loop, &batch->again, 0, serve_ready,
		    batch);
	serve_set_due(batch);
}

static void
serve_event(void *arg, int fd, uint32_t events)
{
	struct batch *batch = arg;

	(void)events;
	if (fd == batch->signal_fd)
		loop_stop(batch->loop);
	else if (fd == batch->listen_fd)
		serve_ready(batch);
	else
		serve_held(batch);
}

/* Until a signal comes.  Other processes serve the socket, too: a client that
 * connects wakes one idle process, not all. */
static int
serve_loop(struct batch *batch, struct err *err)
{
	const struct serve *serve = batch->serve;
	auto_close int signal_fd = fd_signals(false, err);
	int events_fd = serve->events_fd != NULL ?
	    serve->events_fd(serve->arg) :
	    -1;

	if (signal_fd < 0)
		return -1;
	batch->signal_fd = signal_fd;
	batch->loop = loop_new();
	loop_add(batch->loop, signal_fd, EPOLLIN, serve_event, batch);
	loop_add(batch->loop, batch->listen_fd, EPOLLIN | EPOLLEXCLUSIVE,
	    serve_event, batch);
	if (events_fd >= 0)
		loop_add(batch->loop, events_fd, EPOLLIN, serve_event, batch);
	loop_run(batch->loop);
	loop_free(batch->loop);
	return 0;
}

int
serve_until_signal(const struct serve *serve, const struct serve_socket *socket,
    int listen_fd, const char *path, struct err *err)
{
	struct batch batch = { .serve = serve,
		.listen_fd = listen_fd,
		.plain = socket->plain,
		/* One at a time, unless they are settled together. */
		.most = serve->settle != NULL ? SERVE_TOGETHER : 1 };
	int64_t deadline;
	int result;

	/* libfcgi is set up before the signals are blocked. */
	batch.requests = xcalloc(batch.most, sizeof(struct http_request *));
	for (size_t i = 0; i < batch.most; i++)
		batch_renew(&batch, i);
	result = serve_loop(&batch, err);
	if (result == 0 && serve->drain && path != NULL) {
		/* No new client finds the socket; those that have connected get
		 * their answer. */
		(void)unlink(path);
		deadline = clock_monotonic_ms() + DRAIN_MS;
		while (clock_monotonic_ms() < deadline && serve_some(&batch))
			if (serve->events != NULL)
				serve->events(serve->arg);
	}
	if (serve->stop != NULL)
		serve->stop(serve->arg);
	for (size_t i = 0; i < batch.most; i++)
		free(batch.requests[i]);
	free(batch.requests);
	return result;
}
