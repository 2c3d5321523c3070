/* SPDX-License-Identifier: MIT */
#ifndef PISTON_H
#define PISTON_H

#include <stdbool.h>
#include <stddef.h>

#include "contract/piston/piston_request.h"
#include "contract/piston/piston_socket.h"

struct api_app;
struct api_run;
struct err;
struct http_request;

/*
 * Piston's contract: the languages on offer, a request as the cell takes it,
 * and the WebSocket.
 *
 */

/* Two for each interpreter. */
#define PISTON_RUNTIMES_MAX 128

struct piston_runtimes {
	struct piston_runtime items[PISTON_RUNTIMES_MAX];
	size_t count;
};

/* Before the children are forked: memory for what they find out. */
int piston_open(struct api_app *app, struct err *err);
/* The runtimes of the interpreters on offer.  The first request that needs an
 * unknown version runs the interpreter to learn it, for all processes.  anew:
 * versions older than PISTON_ASK_AGAIN_MS are learned again.  False: there was
 * no cell, which is not answered yet, or the client is gone
 * (http_client_gone()). */
#define PISTON_ASK_AGAIN_MS 600000
bool piston_runtimes(struct piston_runtimes *all, struct api_app *app,
    struct http_request *req, bool anew);

/* The limits that the operator has set. */
struct piston_limits piston_limits(const struct api_app *app);
/* A request as the cell takes it; the request stays. */
void piston_fill(struct cell_request *cell, const struct piston_request *req);

/* Serve who has connected to connect.sock: HTTP, then a WebSocket, whose run
 * takes input while it goes on.  For struct serve_socket; app: the api_app. */
void api_connect(void *app, int fd);

/*
 * A client's WebSocket, on a connection that never blocks: what is said to it
 * waits here until there is room, and is bounded.
 */
struct web_socket {
	int fd;			 /* borrowed */
	struct socket_reader in; /* in.message: of web_socket_next() */
	struct buf out;
	size_t sent;
	bool closing; /* our close frame is in there: nothing follows */
	bool over;    /* so is the client's */
	bool gone;    /* it has hung up, or cannot be served any more */
};

void web_socket_open(struct web_socket *s, int fd);
void web_socket_release(struct web_socket *s);

/* Read the head of the request, within some seconds.  False: there is none. */
bool web_socket_read_head(struct web_socket *s, struct socket_head *head);

/* Take the bytes that have come, a piece at most, once web_socket_next() has no
 * more of the last ones. */
void web_socket_receive(struct web_socket *s);
/* Find the next message in these bytes; pings are answered.  False: there is
 * none, or the connection is over. */
bool web_socket_next(struct web_socket *s);
/* Wait for the client until then, or for room to write.  False: in vain. */
bool web_socket_wait(struct web_socket *s, int64_t until_ms);

#endif
