/* SPDX-License-Identifier: MIT */
#ifndef APP_H
#define APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/metrics.h"
#include "files/filestore.h"

#include "protocol/lease.h"
#include "protocol/node_table.h"
#include "protocol/tokens.h"

struct config;
struct err;
struct http_request;
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
	char *sessions; /* folder of their sockets */
	pid_t master;
	struct metrics metrics;
	struct filestore store;
	struct piston_versions *versions; /* piston.h */
	struct tokens tokens;		  /* path NULL: no token is needed */
	struct limits *limits;
	/* NULL: no token of LibreChat's is accepted. */
	struct libre_keys *librechat_keys;
	unsigned char librechat_seal[32]; /* librechat_seal() */
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
 *
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

/* ---- session_holder.c ---- */

/*
 * A session outlives the requests that use it.  A process of its own, the
 * holder, owns its lease and lends the cell to one request after another.  The
 * holder listens on STATE/sessions/<32 hex digits>.  It ends at the session's
 * time, on request, when the cell is gone, when a request breaks off, and with
 * the master.  A client without the token that made the session (app->owner)
 * gets no access and cannot tell that it exists.
 */
#define SESSION_PREFIX "code-session-"
#define SESSION_DIGITS 32
#define SESSION_ID_SIZE (sizeof(SESSION_PREFIX) + SESSION_DIGITS)

/* Start a holder that owns the lease and app->slot for ttl_ms.  0: id is the
 * session's.  The lease is closed here in any case: the holder has its own
 * descriptors. */
int session_holder_start(struct api_app *app, struct lease *lease,
    int64_t ttl_ms, char id[SESSION_ID_SIZE], struct err *err);

/* At the start: remove the sockets of holders that died with their master. */
void session_holder_sweep(const char *folder);

/* A session's cell, for one request or several. */
struct session_borrowed {
	int cell_fd;
	int connection; /* to its holder; -1: it is not borrowed */
	bool lost;	/* the cell is useless: returning it ends the session */
};
/* Borrow a session's cell.  id: any text of a client, here and below.  Wait at
 * most wait_ms for earlier requests, or until the client on that connection
 * hangs up (-1: no client).  -1 with ERR_NOT_FOUND: there is no such session;
 * with ERR_TIMEOUT: its cell did not become free, or too many requests wait. */
int session_holder_borrow(const struct api_app *app, const char *id, int client,
    int wait_ms, struct session_borrowed *b, struct err *err);
/* Give it back, between two requests to the cell. */
void session_holder_return(struct session_borrowed *b);
/* End the session; returns when it has ended.  False: there is none. */
bool session_holder_end(const struct api_app *app, const char *id);

/* A session is at rest between two commands.  After so long it may be evicted
 * for a new session of the same owner. */
#define SESSION_REST_MS 10000
/* Evict the session of app->owner that has been at rest for the longest time,
 * if that is long enough; returns when it has ended.  end false: only check
 * whether there is one.  False: there is none, and *next_ms is the time until
 * one may be evicted or ends. */
bool session_holder_make_room(const struct api_app *app, bool end,
    int64_t *next_ms);

/*
 * Lease a cell for a session of ttl_ms.  If sessions have all cells, the
 * owner's session that has been at rest for the longest time is evicted.
 * interpreter NULL: the default one.
 *
 * REFUSAL_NONE: the lease is for session_holder_start(), or to be closed.
 * Otherwise err says why and *next_ms is the time until a cell may be free; the
 * client may be gone.
 *
 */
enum refusal session_cell_lease(struct api_app *app, struct http_request *req,
    const char *interpreter, int64_t ttl_ms, struct lease *lease,
    int64_t *next_ms, struct err *err);

/*
 * The cell that the runs of a conversation have in common, one at a time: its
 * work folder stays from one to the next.  The cell ends when no run has come
 * for IL_TUNE_LIBRECHAT_REST_SECONDS, or when another session of the same owner
 * needs room.
 */
struct session_named {
	char id[SESSION_ID_SIZE];
	bool fresh;		      /* it was made for this run */
	struct session_borrowed cell; /* connection -1: the run has its own */
	bool used;		      /* a run went to its end in it */
};
/* Borrow the cell of the conversation's session, which is made if it is
 * missing.  hint: the conversation's name; NULL: it has none.  cell.connection
 * -1: the cell is not to be had. */
void session_holder_borrow_named(struct session_named *s, struct api_app *app,
    struct http_request *req, const char *hint);

#endif
