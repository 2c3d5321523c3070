/* SPDX-License-Identifier: MIT */
#ifndef WEB_SOCKET_H
#define WEB_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "contract/piston/piston_socket.h"

/*
 * A client's WebSocket, on a connection that never blocks: what is said to it
 * waits here until there is room, and is bounded.
 */
struct web_socket {
	int fd;			 /* borrowed */
	struct socket_reader in; /* in.message: of web_socket_next() */
	struct buf out;
	bool closing; /* our close frame is in there: nothing follows */
	bool over;    /* so is the client's */
	bool gone;    /* it has hung up, or cannot be served any more */
};

void web_socket_open(struct web_socket *s, int fd);
void web_socket_release(struct web_socket *s);

/* Read the head of the request, within some seconds.  False: there is none. */
bool web_socket_read_head(struct web_socket *s, struct socket_head *head);
/* Receive the bytes that have come, a piece at most, once web_socket_next() has
 * no more of the last ones. */
void web_socket_receive(struct web_socket *s);
/* Find the next message in these bytes; pings are answered.  False: there is
 * none, or the connection is over. */
bool web_socket_next(struct web_socket *s);
/* Wait for the client until then, or for room to write.  False: in vain. */
bool web_socket_wait(struct web_socket *s, int64_t until_ms);

/* Send what there is room for. */
void web_socket_flush(struct web_socket *s);
/* Send a message, which is released. */
void web_socket_say(struct web_socket *s, json_t *message);
/* Send the last word; after that nothing is sent. */
void web_socket_goodbye(struct web_socket *s, int code, const char *reason);
/* After the last word: wait, for a moment, until it is read and the client
 * hangs up or says that it will.  Were we to hang up first, what the client has
 * not read would be lost. */
void web_socket_linger(struct web_socket *s);

#endif
