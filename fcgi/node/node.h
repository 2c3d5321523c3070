/* SPDX-License-Identifier: MIT */
#ifndef NODE_H
#define NODE_H

struct config;
struct db;
struct http_request;
struct node_table;

/*
 * The state of a process of il-node.  All requests come from other nodes: nginx
 * has looked at the key.
 */
struct node {
	const struct config *config;
	struct node_table *table;
	struct db *db; /* NULL: it does not open just now */
	int base;      /* IL_BASE_DIR; -1 */
};

/* views.c: what was run, for a user of another node
 * (sandbox/protocol/node_ask.h). */
void views_get(struct node *node, struct http_request *req, const char *id);

/* people.c: PUT /nodes/slots/SLOT: its people are about to come.  200: this
 * node remembers nothing of it any more; 409: by its table the slot is its own,
 * and it has given it away. */
void slots_put(struct node *node, struct http_request *req, const char *id);

/* PUT /nodes/people/USER_ID, a parcel (sandbox/move/parcel.h).  200:
 * the person is here; 500: nobody knows; 400, 409, 503 and 507: is not, and
 * nothing is left of it.  The
 * body is one line that says why. */
void people_put(struct node *node, struct http_request *req, const char *id);

#endif
