/* SPDX-License-Identifier: MIT */
#ifndef NODE_ASK_H
#define NODE_ASK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/basics.h"

struct config;
struct err;

/*
 * One request to another node: HTTP/1.0 over the unix socket of this host's own
 * nginx (nginx/nodes.conf).  It has the nodes' key, and goes to the node that
 * Inline-Node names.  An answer comes through two nginxes, and is read as any
 * bytes from outside.
 */
#define NODES_SOCKET "nodes/nginx.sock" /* below IL_STATE_DIR */
#define NODE_HEAD_MAX 16384
#define NODE_NAME_MAX 1024 /* bytes of a file's name, its last ones */
#define NODE_NOTE_MAX 64
#define NODE_LENGTH_MAX (INT64_C(100) << 20)

/* The head of an answer.  The note and the name are a file's (NODE_FILES). */
struct node_answer {
	int status;	/* 100 to 599; 0: there is none */
	int64_t length; /* of the body; -1: it ends with the connection */
	char note[NODE_NOTE_MAX + 1];
	char name[NODE_NAME_MAX + 1]; /* UTF-8; "": it does not say */
};

struct node_ask {
	struct pollfd unless; /* an event that ends the wait; fd -1: none */
	int64_t until_ms;     /* monotonic: the answer is there by then */
	int fd;
	struct node_answer answer;
	struct buf body; /* the bytes so far; its max bounds a piece */
};

/* Connect, and send a request for the node at HOST:PORT: "GET /health", and
 * further headers, each with its "\r\n".  fd is to be closed and body released
 * whatever comes.  ERR_UNAVAILABLE: our nginx does not listen. */
int node_ask_begin(struct node_ask *ask, const struct config *config,
    const char *address, const char *request, const char *headers,
    struct err *err);
/* Append the next bytes to the body.  Returns how many they are; 0: the end;
 * -1: ERR_UNAVAILABLE, nothing has come in time; ERR_LIMIT,
 * the body is full; ERR_TIMEOUT, `unless` has happened. */
ssize_t node_ask_receive(struct node_ask *ask, struct err *err);
/* Read the head of the answer, behind which the body begins. */
int node_ask_head(struct node_ask *ask, struct err *err);
/* After the head: the whole body. */
int node_ask_body(struct node_ask *ask, struct err *err);
void node_ask_end(struct node_ask *ask);
#define auto_node_ask __attribute__((cleanup(node_ask_end)))
/* clang-format off */
#define NODE_ASK_INIT(body_max, end_ms) \
	{ .unless = { .fd = -1 }, .until_ms = (end_ms), .fd = -1, \
	  .body = BUF_INIT(body_max) }
/* clang-format on */

/* ---- the head ---- */

/* Read a head.  Returns its length in the text; 0: it has no end yet; -1: it is
 * none of ours. */
ssize_t node_answer_read(struct node_answer *answer, const char *text,
    size_t len);

/* A file is asked for by NODE_FILES and its id, and is told of by these headers
 * of the answer. */
#define NODE_FILES "/nodes/files/"
void node_answer_add(struct buf *headers, const char *name, const char *note);

/* ---- a run ---- */

/*
 * A node asks another one for a run whose code somebody has shared:
 *
 *	GET NODE_VIEWS<view id>
 *	Inline-User: <user id>		who asks for it
 *
 *	200	{"text": "…", "input": "…", "version": "…", "timeit": false}
 *	404	there is no such view, it is of no run with code, or it is
 *		neither shared nor this user's
 *
 * A node whose slot has gone to another one (store/moves.h) has its nginx ask
 * that one, which asks nobody.
 *
 * No text holds a NUL; what a reader does not know is passed over.
 */
#define NODE_VIEWS "/nodes/views/"
/* Bytes of each of its texts. */
#define NODE_VIEW_TEXT_MAX ((size_t)1 << 20)
/* Bytes of the JSON: each of the code's and of the input's is six at most. */
#define NODE_VIEW_MAX (12 * NODE_VIEW_TEXT_MAX + 4096)

struct node_view {
	char *text;    /* the code, not empty */
	char *input;   /* its standard input */
	char *version; /* of Python, "": the usual one */
	bool timeit;
};

/* Heap; all NULL, before and after. */
void node_view_release(struct node_view *view);
#define auto_node_view __attribute__((cleanup(node_view_release)))

/* Its JSON; heap. */
char *node_view_write(const struct node_view *view);
/* Read it, to be released.  ERR_PROTOCOL: that is none. */
int node_view_read(struct node_view *view, const char *json, size_t len,
    struct err *err);

#endif
