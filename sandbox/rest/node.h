/* SPDX-License-Identifier: MIT */
#ifndef REST_NODE_H
#define REST_NODE_H

#include <stdint.h>

struct buf;
struct err;
struct rest;

/*
 * Requests to another node (IL_NODES), over the handle that Discord's API has:
 * through the nginx of this host, which knows the key.
 */
struct rest_node {
	const char *socket;  /* NODES_SOCKET, of our own nginx */
	const char *address; /* HOST:PORT */
	int64_t user_id;     /* for whose sake: Inline-User */
};

/* GET a path of it, once.  The HTTP status, and what it said; -1: no answer. */
int rest_ask_node(struct rest *rest, const struct rest_node *node,
    const char *path, int timeout_ms, struct buf *body, struct err *err);

#endif
