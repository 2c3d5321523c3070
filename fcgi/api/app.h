/* SPDX-License-Identifier: MIT */
#ifndef APP_H
#define APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "api/metrics.h"
#include "files/filestore.h"

#include "protocol/lease.h"
#include "protocol/node_table.h"
#include "protocol/tokens.h"

struct config;
struct err;
struct http_request;
struct librechat_calls;
struct limits;
struct piston_versions;
struct libre_keys;

/*
 * State of il-api that its routes share.  It is made once, before the children
 * are forked, and then only read (counters lie in shared memory), except for
 * the facts of the one request that is being answered.
 */
#define API_INTERPRETERS_MAX 64
/* Bytes of a request's body; its JSON takes about as much again. */
#define API_BODY_MAX ((size_t)128 << 20)

struct api_app {
	const struct config *config;
	char *lease_socket;
	char *sessions; /* folder of the slots and of our counters */
	struct metrics metrics;
	struct filestore store;
	struct piston_versions *versions; /* piston_open() */
	struct tokens tokens;		  /* path NULL: no token is needed */
	struct limits *limits;
	/* NULL: no token of LibreChat's is accepted. */
	struct libre_keys *librechat_keys;
	unsigned char librechat_seal[32]; /* librechat_seal() */
	struct librechat_calls *calls;
	json_t *mcp_list; /* mcp_list_read() */
	/* Set by nodes.c.  On one host nodes is NULL and the tag is "". */
	struct node_table *nodes;
	char tag[NODES_TAG_LEN + 1];			    /* our node's */
	const char *interpreters[API_INTERPRETERS_MAX + 1]; /* ends with NULL */

	/* ---- of the request that is being answered ---- */

	struct token token;		      /* the sender's limits, */
	bool limited;			      /* if there are any */
	unsigned char owner[TOKENS_HASH_LEN]; /* its token; zeros: none */
	int slot; /* the token's cell slot; -1 and less: none */
	/* The values of the first {…} in its path and of the second; "": none.
	 */
	const char *id;
	const char *second_id;
	/* A LibreChat user's tenant (zeros: none), and the owner of the files
	 * that a resource shares. */
	unsigned char tenant[TOKENS_HASH_LEN];
	unsigned char resource[TOKENS_HASH_LEN];
	int64_t fetched;	      /* bytes of other nodes' files */
	char away[NODES_TAG_LEN + 1]; /* node that did not answer; "": none */
};

/* ---- nodes.c ---- */

/*
 * With several hosts (IL_NODES) an id holds the tag of the node that made it:
 * in the last digits of a file's id, behind "code-session-" of a session's, in
 * the first characters of a LibreChat session's.  On one host ids hold no tag.
 *
 * A request for a session or file of another node is answered with that node's
 * address, and nginx passes the request on unchanged.
 */
/* Locations of nginx/api.conf.in, by contract. */
#define NODES_TO_V1 "@node_v1"
#define NODES_TO_LIBRECHAT "@node_librechat"
#define NODES_TO_MCP "@node_mcp"

/* At the start.  ERR_CONFIG: as of node_table_open(). */
int nodes_open(struct api_app *app, struct err *err);

/* If the session or file of this id is on another node, have nginx pass the
 * request on, in its location of this name.  False: it is on this node, or its
 * node did not answer nginx, or the request came from a node, which has checked
 * already. */
bool nodes_pass_on(const struct api_app *app, struct http_request *req,
    const char *id, const char *location);

/* As filestore_get(), also for another node's file: it is copied here first,
 * for app->store.owner, and entry, which may be NULL, has its own id and name.
 * Further errors: ERR_NOT_FOUND: its node cannot be reached, or did not answer
 * this request before; ERR_LIMIT: a request's files of other nodes are too
 * large together; ERR_UNAVAILABLE: the file cannot be had just now;
 * ERR_TIMEOUT: the client has left. */
int nodes_get_file(struct api_app *app, const struct http_request *req,
    const char *id, size_t len, struct filestore_entry *entry, struct err *err);

/* Answer the request if it is another node's nodes_get_file().  True: it was
 * answered. */
bool nodes_serve_file(struct api_app *app, struct http_request *req);

/* ---- piston.c ---- */

/* Before the children are forked: memory for what they find out. */
int piston_open(struct api_app *app, struct err *err);
/* Serve a client that has connected to connect.sock: HTTP, then a WebSocket,
 * whose run reads input while it goes on.  For struct serve_socket; arg: the
 * api_app. */
void api_connect(void *arg, int fd);

/* ---- session.c ---- */

/*
 * A session outlives the requests that use it, and il-api: between two of them
 * the broker has its lease (lease_park()).  A client without the token that
 * made the session (app->owner) gets no access and cannot tell that it exists.
 */
#define SESSION_PREFIX "code-session-"
#define SESSION_DIGITS 32
#define SESSION_ID_SIZE (sizeof(SESSION_PREFIX) + SESSION_DIGITS)
_Static_assert(LEASE_OWNER_LEN == TOKENS_HASH_LEN, "an owner");

/* Set a new id. */
void session_make_id(const struct api_app *app, char id[SESSION_ID_SIZE]);

/*
 * Lease a cell for a session of app->owner; app->slot is occupied until its
 * end.  interpreter NULL: the default one; rest_ms: limit of its time at rest,
 * 0: none.  If sessions have all cells, the broker evicts one of the owner's.
 * lease_park() makes the session, lease_close() drops it.  Unless REFUSAL_NONE,
 * err says why and lease->next_ms is the time until a cell may be free; the
 * client may be gone.
 */
enum refusal session_lease(struct api_app *app, struct http_request *req,
    const char *id, const char *interpreter, int64_t ttl_ms, int64_t rest_ms,
    struct lease *lease, struct err *err);

/* Get the lease of a session, until lease_park().  id: any text of a client,
 * here and below.  Wait at most wait_ms for earlier requests, or until the
 * client on that connection hangs up.  -1 with ERR_NOT_FOUND: there is no such
 * session; with ERR_TIMEOUT: it did not become free, or another request waits
 * for it. */
int session_resume(const struct api_app *app, const char *id, int client,
    int wait_ms, struct lease *lease, struct err *err);
/* End the session.  False: there is none. */
bool session_end(const struct api_app *app, const char *id);
/* Evict the session of app->owner that has been at rest for the longest time,
 * if that is long enough.  rests: one of those with a limit of their rest, or
 * one of the others, as they have slots of their own.  evict false: only check
 * whether there is one.  False: there is none. */
bool session_make_room(const struct api_app *app, bool rests, bool evict);

/*
 * The cell that the runs of a conversation have in common, one at a time: its
 * work folder stays from one to the next.  The cell ends when no run has come
 * for IL_TUNE_LIBRECHAT_REST_SECONDS, or when another session of the same owner
 * needs room.
 */
struct session_named {
	char id[SESSION_ID_SIZE];
	bool fresh;	   /* it was made for this run */
	struct lease cell; /* LEASE_NONE: the run has its own */
	bool used;	   /* a run went to its end in it */
};
/* Get the cell of the conversation's session, which is made if it is missing.
 * hint: the conversation's name; NULL: it has none.  cell.cell_fd -1: the cell
 * is not to be had. */
void session_resume_named(struct session_named *s, struct api_app *app,
    struct http_request *req, const char *hint);

#endif
