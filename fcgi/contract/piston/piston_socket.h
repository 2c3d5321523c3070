/* SPDX-License-Identifier: MIT */
#ifndef PISTON_SOCKET_H
#define PISTON_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/basics.h"

#define SHA1_LEN 20

/* SHA-1 (FIPS 180-4), which a WebSocket's handshake asks for (RFC 6455, 4.2.2).
 * It proves that both sides speak WebSocket, and keeps no secret.  libsodium
 * has none. */
void sha1(const void *data, size_t len, unsigned char hash[SHA1_LEN]);

/*
 * A WebSocket as RFC 6455 has it, the server's side, without extensions: the
 * request that opens it, and frames.  All bytes that are read are a
 * stranger's.
 */
#define SOCKET_HEAD_MAX 16384
#define SOCKET_MESSAGE_MAX ((size_t)8 << 20)
#define SOCKET_PIECE 65536   /* bytes that are added at one time */
#define SOCKET_ANSWER_LEN 28 /* of Sec-WebSocket-Accept */

/* ---- the request ---- */

/* Headers that count, as they stand in the head; "" where there is none. */
struct socket_head {
	char path[256];
	char upgrade[32];
	char key[64];
	char version[8];
	char authorization[256];
	char foreign[8]; /* Inline-Foreign: the web server's word */
};

/* Read a head, which ends with its empty line.  Returns its length; 0: it has
 * not ended; -1: it is none, or too long. */
ssize_t socket_head_read(struct socket_head *head, const char *data,
    size_t len);
/* The proof that the key was understood, and a NUL. */
void socket_answer(const char *key, char answer[SOCKET_ANSWER_LEN + 1]);

/* ---- frames ---- */

enum socket_event {
	SOCKET_MORE,	/* more bytes are needed */
	SOCKET_MESSAGE, /* a whole one, text or binary */
	SOCKET_PING,	/* to be answered with its data */
	SOCKET_CLOSE,	/* the peer's last word */
	SOCKET_FAULT,	/* the peer is no WebSocket: code says how */
};

struct socket_reader {
	struct buf in; /* from taken on: not taken yet */
	size_t taken;
	struct buf message; /* of the last MESSAGE, or its beginning */
	const char
	    *control; /* data of the last PING or CLOSE, in these bytes */
	size_t control_len;
	bool within; /* a message has begun */
	bool is_text;
	int code; /* of a fault: what the close frame says */
};

void socket_reader_init(struct socket_reader *r);
void socket_reader_release(struct socket_reader *r);
/* Add bytes as they come, SOCKET_PIECE at most; take all events before the next
 * ones, so that no more than a frame and a piece are kept. */
void socket_reader_add(struct socket_reader *r, const void *data, size_t len);
/* The next event; its data are good until the next call.  After FAULT and
 * CLOSE there is none. */
enum socket_event socket_next(struct socket_reader *r);

enum socket_opcode {
	SOCKET_CONTINUATION = 0,
	SOCKET_TEXT = 1,
	SOCKET_BINARY = 2,
	SOCKET_OP_CLOSE = 8,
	SOCKET_OP_PING = 9,
	SOCKET_PONG = 10,
};
/* Append a frame to be sent; one that closes has 125 bytes at most, so its
 * reason is cut. */
void socket_add(struct buf *out, enum socket_opcode opcode, const char *data,
    size_t len);
void socket_add_close(struct buf *out, int code, const char *reason);

#endif
