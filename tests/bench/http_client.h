/* SPDX-License-Identifier: MIT */
#ifndef BENCH_HTTP_CLIENT_H
#define BENCH_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/basics.h"

struct loop;

/*
 * One connection to a server on loopback, one request at a time.  It is kept
 * for the next request unless the server closes it; a request that meets a
 * connection which the server has just closed is sent again on a new one.
 */
struct http_client {
	struct loop *loop;
	uint16_t port;
	int fd; /* -1: none */
	bool reused;
	bool waiting;
	const char *request; /* of the caller's until the answer */
	size_t request_len;
	size_t sent; /* of it */
	struct buf in;
	struct buf body;
	/* error: NULL, or why there is no answer.  The body is valid until the
	 * next request. */
	void (*answer)(void *arg, int status, const struct buf *body,
	    const char *error);
	void *arg;
};

void http_client_init(struct http_client *client, struct loop *loop,
    uint16_t port);
void http_client_release(struct http_client *client);

/* Connect beforehand; true: there is a connection. */
bool http_client_connect(struct http_client *client);
/* Drop the connection. */
void http_client_close(struct http_client *client);
/* Send; answer() is called once, perhaps before this returns. */
void http_client_send(struct http_client *client, const char *data, size_t len);

#endif
