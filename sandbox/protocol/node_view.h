/* SPDX-License-Identifier: MIT */
#ifndef NODE_VIEW_H
#define NODE_VIEW_H

#include <stdbool.h>
#include <stddef.h>

struct err;

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
 * It goes through the own nginx (NODES_SOCKET), to which Inline-Node names the
 * other node.  No text holds a NUL; what a reader does not know is passed over.
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
