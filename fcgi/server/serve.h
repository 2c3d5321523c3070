/* SPDX-License-Identifier: MIT */
#ifndef SERVE_H
#define SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <fcgiapp.h>

struct buf;
struct err;

/*
 * One HTTP request that nginx handed over by FastCGI, and its answer.  libfcgi
 * is called from this file only.  A process serves one after another, and so a
 * peer that stalls for HTTP_STALL_MS is dropped; libfcgi adds up to 2 s to it.
 * nginx keeps 256 KiB of an answer, and of what is longer nothing on the disk:
 * there the peer is as slow as the client.
 *
 * Order of calls: http_init() once; http_accept(); http_read*(); either
 * http_answer() or http_begin(), http_write()… ; http_finish().
 */
#define HTTP_STALL_MS 2000
#define HTTP_READER_MS 60000 /* as nginx/limits.conf */

struct http_request {
	const char *method; /* "POST"; borrowed until http_finish() */
	const char *path;  /* decoded by nginx, without the query, "" if none */
	const char *query; /* after the '?', as sent, "" if none */
	int64_t length;	   /* Content-Length: HTTP_NO_LENGTH, HTTP_BAD_LENGTH */
	int64_t unread;	   /* bytes of the body still to be read */
	bool begun;	   /* the answer's head is out */
	bool failed;	   /* the peer is gone or stalled: writes do nothing */
	int status;	   /* of the answer; 0: none yet */
	int64_t sent;	   /* bytes of its body */
	int64_t stall_ms;
	int64_t whole_ms; /* for the answer from its head on; 0: no limit */
	int64_t until_ms; /* that, on the monotonic clock; 0: none */
	bool hasty;	  /* the timer may run on until http_rest() */
	bool held;	  /* on the heap, and its holder's from now on, who
			   * answers it later, finishes and frees it */
	bool raw;	  /* it came as HTTP: http_raw() */
	bool gate;	  /* nginx asks whether it is to read the body: there is
			   * none yet, and the answer goes into headers */
	bool relayed;	  /* another node's nginx reads it: an answer with 200
			   * goes into a header, so that it comes whole or not
			   * at all */
	FCGX_Request fcgi;
};

#define HTTP_NO_LENGTH (-1)
#define HTTP_BAD_LENGTH (-2)

/* The first process calls the first one before it forks others, so that they
 * share what libfcgi sets up once.  Set libfcgi up for a listening, nonblocking
 * socket, which stays the caller's, before signals are blocked. */
void http_prepare(void);
void http_init(struct http_request *req, int listen_fd);
/* A hasty server takes many requests in a row with one timer.  It calls this
 * before it waits for anything else, so that the timer does not fire then. */
void http_rest(void);

/* Take the next request.  False: there is none (somebody else took it, or what
 * connected was no FastCGI client); poll again.  A process that cannot accept,
 * having no descriptor left, would be woken again at once: it ends. */
bool http_accept(struct http_request *req);

/* A header of the request by its CGI name ("HTTP_USER_AGENT"); NULL: absent. */
const char *http_param(const struct http_request *req, const char *name);

/* Is a parameter "1"?  And does the request come from another node, which nginx
 * knows by its key? */
bool http_says(const struct http_request *req, const char *name);
bool http_is_from_node(const struct http_request *req);
/* A parameter in seconds, "12.345", as milliseconds; -1: absent, or none. */
int64_t http_param_ms(const struct http_request *req, const char *name);

/* Wall clock time, in milliseconds, at which nginx had the request's first
 * byte; and microseconds since nginx sent the request to us; -1: unknown. */
int64_t http_received_ms(const struct http_request *req);
int64_t http_waited_us(const struct http_request *req);

/* The next bytes of the body, at most cap.  0: it is complete; -1: the peer
 * hung up before the length that it had announced. */
ssize_t http_read(struct http_request *req, void *data, size_t cap);
/* Append the whole rest of the body.  False: cut short, or too much for it. */
bool http_read_all(struct http_request *req, struct buf *body);

/* "404 Not Found", for each status that we answer with.  Static. */
const char *http_status(int status);

/* Allow a slow reader, before the answer: it holds up no other client.  The
 * reader is dropped when it stalls for HTTP_READER_MS, or has not read all in
 * whole_ms. */
void http_allow_slow_reader(struct http_request *req, int64_t whole_ms);

/* The whole answer, with Content-Length.  type NULL: no Content-Type.  headers:
 * further lines, each ended with "\r\n", or NULL. */
void http_answer(struct http_request *req, int status, const char *type,
    const char *headers, const void *body, size_t len);

/* An answer of unknown length, which nginx sends in chunks as they come. */
void http_begin(struct http_request *req, int status, const char *type,
    const char *headers);
void http_write(struct http_request *req, const void *data, size_t len);
/* Send everything that was written so far.  False: the client is gone. */
bool http_flush(struct http_request *req);

/* Has the client hung up (nginx closes its connection to us then)?  Never
 * blocks.  http_fd() polls for the same: POLLRDHUP. */
bool http_client_gone(const struct http_request *req);
int http_fd(const struct http_request *req);

/* Make a request that came as HTTP, not FastCGI: on this connection, with these
 * parameters (NAME=value…, ends with NULL; borrowed).  Only http_param(),
 * http_fd(), http_client_gone(), and http_answer() once, may be called. */
void http_raw(struct http_request *req, int fd, char **params);

/* End the answer and close the connection; safe to call twice. */
void http_finish(struct http_request *req);

/* ---- processes ---- */

/*
 * A child accepts the waiting requests, answers them, finishes the answers, and
 * only then does the work that may follow.  It ends at SIGTERM or SIGINT, after
 * it has answered the requests that had connected before.
 */
#define SERVE_SOCKETS_MAX 6

struct serve_socket {
	const char *name; /* in the state directory; static */
	int backlog;	  /* the kernel cuts it at net.core.somaxconn */
	size_t children;
	/* NULL: FastCGI.  Otherwise this function serves each connection, one
	 * after the other; the descriptor is closed afterwards. */
	void (*plain)(void *arg, int fd);
};

/* nginx gives up at once when the queue is full, so it is long. */
#define SERVE_BACKLOG 4096

/* A child answers at most so many requests together, and gathers them for so
 * long after the first one came. */
#define SERVE_TOGETHER 256
#define SERVE_GATHER_MS 25

/* All functions get arg.  All but answer may be NULL; events_fd,
 * due_ms and events, for a program that holds requests back, only together. */
struct serve {
	const struct serve_socket *sockets;
	size_t socket_count;
	void *arg;

	/* In a child, first and last; index: the child's, among all. */
	void (*start)(void *arg, size_t index);
	void (*stop)(void *arg);
	/* Answer the request, or keep it: true.  settle() then answers it, the
	 * index-th kept one. */
	bool (*answer)(void *arg, struct http_request *req, size_t index);
	/* Answer the first count kept requests, or hold some back (held in
	 * struct http_request).  NULL: no request is ever kept. */
	void (*settle)(void *arg, size_t count);
	/* more: other requests wait already.  Whichever child accepts them,
	 * this is called again at once. */
	void (*after)(void *arg, bool more);
	/* A program that holds requests back also waits for this descriptor
	 * (after start()) and until this time (monotonic; INT64_MAX: none).
	 * events() is called when either has come. */
	int (*events_fd)(const void *arg);
	int64_t (*due_ms)(const void *arg);
	void (*events)(void *arg);
	/* At the end answer the requests in the queue of a socket of our own,
	 * which ends with us. */
	bool drain;

	/* In the master: tick() at the start and every tick_ms, but not while
	 * all children are stopped, when no request is answered; lost() when a
	 * child ended unexpectedly. */
	void (*tick)(void *arg);
	int64_t tick_ms;
	void (*lost)(void *arg);
	/* Time for the children to answer their requests; then they are
	 * killed. */
	int64_t stop_ms;
	/* At the end do not wait for the children: each finishes its request
	 * and ends.  For a supervisor that starts the next master at once and
	 * kills no process. */
	bool linger;
};

/* Be a child of one of these sockets until a signal comes, then answer what is
 * in its queue.  path: of a socket of our own, or NULL. */
int serve_until_signal(const struct serve *serve,
    const struct serve_socket *socket, int listen_fd, const char *path,
    struct err *err);

#endif
