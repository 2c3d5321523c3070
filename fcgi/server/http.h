/* SPDX-License-Identifier: MIT */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <fcgiapp.h>

struct buf;

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

/* Set libfcgi up for a listening, nonblocking socket, which stays the
 * caller's.  Call it before signals are blocked. */
void http_init(struct http_request *req, int listen_fd);
/* The first process calls this before it forks others, so that they share what
 * libfcgi sets up once. */
void http_prepare(void);

/* A hasty server takes many requests in a row with one timer.  It calls this
 * before it waits for anything else, so that the timer does not fire then. */
void http_rest(void);

/* Take the next request.  False: there is none (somebody else took it, or what
 * connected was no FastCGI client); poll again.  A process that cannot accept,
 * having no descriptor left, would be woken again at once: it ends. */
bool http_accept(struct http_request *req);

/* A header of the request by its CGI name ("HTTP_USER_AGENT"); NULL: absent. */
const char *http_param(const struct http_request *req, const char *name);

/* Is a parameter "1"? */
bool http_says(const struct http_request *req, const char *name);
/* Does the request come from another node?  nginx knows nodes by their key. */
bool http_is_from_node(const struct http_request *req);
/* A parameter in seconds, "12.345", as milliseconds; -1: absent, or none. */
int64_t http_param_ms(const struct http_request *req, const char *name);

/* Wall clock time, in milliseconds, at which nginx had the request's first
 * byte; -1: unknown. */
int64_t http_received_ms(const struct http_request *req);

/* Microseconds since nginx sent the request to us, by its wall clock time in
 * milliseconds; -1: unknown. */
int64_t http_waited_us(const struct http_request *req);

/* The next bytes of the body, at most cap.  0: it is complete; -1: the peer
 * hung up before the length that it had announced. */
ssize_t http_read(struct http_request *req, void *data, size_t cap);
/* Append the whole rest of the body.  False: cut short, or more than the buffer
 * may hold. */
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

#endif
