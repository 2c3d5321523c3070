/* SPDX-License-Identifier: MIT */
#ifndef NODE_FETCH_H
#define NODE_FETCH_H

struct api_app;
struct err;
struct filestore_entry;
struct http_request;
struct node_entry;

/*
 * A file of another node.  il-api has no network: it asks its own nginx, over a
 * unix socket, which goes there and nowhere else.
 */
/* As nodes_get_file(), of an id that is that node's. */
int node_fetch(struct api_app *app, const struct http_request *req,
    const struct node_entry *node, const char *id,
    struct filestore_entry *entry, struct err *err);

#endif
