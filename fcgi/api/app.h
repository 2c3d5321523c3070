/* SPDX-License-Identifier: MIT */
#ifndef APP_H
#define APP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "api/limits.h"
#include "api/metrics.h"
#include "files/filestore.h"

#include "protocol/node_table.h"
#include "protocol/tokens.h"

struct config;
struct err;
struct http_request;
struct piston_versions;
struct libre_keys;

/*
 * What the routes of il-api share: made once, before the children are forked,
 * and then only read (what is counted is in shared memory); but for what is
 * known of the one request that is being answered: whose it is, and its id.
 */
#define API_INTERPRETERS_MAX 64
/* Of a request's body; its JSON takes about as much again. */
#define API_BODY_MAX ((size_t)128 << 20)

struct api_app {
	const struct config *config;
	char *lease_socket;
	char *sessions; /* folder of their sockets */
	pid_t master;
	struct metrics metrics;
	struct filestore store;
	struct piston_versions *versions; /* piston.h */
	struct tokens tokens; /* path NULL: nobody is asked for one */
	struct limits limits;
	struct token token;		      /* what who asks may have, */
	bool limited;			      /* if that is limited */
	unsigned char owner[TOKENS_HASH_LEN]; /* its token; zeros: none */
	int slot; /* the cell that its token may have; -1 and less: none */
	/* What its path has for the first {…} and the second; "": nothing. */
	const char *id;
	const char *second_id;
	/* Whose signatures LibreChat's users have; NULL: nobody's.  Of such a
	 * user its tenant (zeros: none), and the owner of what it shares. */
	struct libre_keys *librechat_keys;
	unsigned char tenant[TOKENS_HASH_LEN];
	unsigned char resource[TOKENS_HASH_LEN];
	unsigned char librechat_seal[32]; /* librechat_seal() */
	/* Set by nodes.c.  On one host nodes is NULL and the rest is empty. */
	struct node_table *nodes;
	char tag[NODES_TAG_LEN + 1];  /* ours */
	int64_t fetched;	      /* bytes of theirs, for this request */
	char away[NODES_TAG_LEN + 1]; /* did not answer it; "": none */
	const char *interpreters[API_INTERPRETERS_MAX + 1]; /* ends with NULL */
};

/* ---- nodes.c ---- */

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

/* If the session or file of this id is on another node, have nginx pass the
 * request on, in its location of this name.  False: it is on this node, or its
 * node was asked in vain, or the request came from a node, which has looked
 * already. */
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
