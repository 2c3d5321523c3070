/* SPDX-License-Identifier: MIT */
#ifndef NODES_H
#define NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "../files/filestore.h"

struct api_app;
struct err;
struct http_request;

/*
 * Where there are several hosts (IL_NODES), an id has the tag of the node in it
 * that made it: a file's are its last digits, a session's the first ones behind
 * "code-session-", a LibreChat session's its first characters.  On one host
 * none of this does anything.
 *
 * A request for what another node has is answered with that node's address, and
 * nginx passes it on, as it came.
 */
/* Locations of nginx/api.conf, by contract. */
#define NODES_TO_V1 "@node_v1"
#define NODES_TO_LIBRECHAT "@node_librechat"
#define NODES_TO_MCP "@node_mcp"

/* At the start.  ERR_CONFIG: as of node_table_open(). */
int nodes_open(struct api_app *app, struct err *err);

/* A request names a session or a file that is on another node: have nginx ask
 * that one instead, in its location of this name.  False:
 * it is not, or that node was asked in vain, or the request came from a node,
 * which has looked already. */
bool nodes_pass_on(const struct api_app *app, struct http_request *req,
    const char *id, const char *location);

/* As filestore_get(), wherever the file is: one of another node is brought here
 * first, for app->store.owner, and its own id and name are in entry, which may
 * be NULL.  -1 with ERR_NOT_FOUND, too, where its node cannot be reached, or
 * has not answered this request before; ERR_LIMIT: a request's files of other
 * nodes are too large together; ERR_UNAVAILABLE: it cannot be had just now;
 * ERR_TIMEOUT: the client has left. */
int nodes_get_file(struct api_app *app, const struct http_request *req,
    const char *id, size_t len, struct filestore_entry *entry, struct err *err);

/* The other side of nodes_get_file(): is it a request of another node's for a
 * file?  Then it was answered. */
bool nodes_serve_file(struct api_app *app, struct http_request *req);

#endif
