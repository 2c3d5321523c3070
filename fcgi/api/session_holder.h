/* SPDX-License-Identifier: MIT */
#ifndef SESSION_HOLDER_H
#define SESSION_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/lease.h"

struct api_app;
struct err;
struct http_request;

/*
 * A session outlives the requests that use it: a process of its own keeps its
 * lease, and lends the cell to one request after another.  It listens on
 * STATE/sessions/<32 hex digits>, and ends at its time, when it is told to,
 * when the cell is gone, when a request breaks off, and with the master, to
 * which it belongs.  To whoever comes with another token than made it
 * (app->owner), it is not there.
 */
#define SESSION_PREFIX "code-session-"
#define SESSION_DIGITS 32
#define SESSION_ID_SIZE (sizeof(SESSION_PREFIX) + SESSION_DIGITS)

/* Have a new holder keep the lease for so long, and app->slot with it.  After 0
 * id is the session's.  The lease is closed here in any case: the holder has
 * its own descriptors. */
int session_holder_start(struct api_app *app, struct lease *lease,
    int64_t ttl_ms, char id[SESSION_ID_SIZE], struct err *err);

/* A session with an id of the caller's choice, for the first process that
 * claims it: */
struct session_claim {
	char id[SESSION_ID_SIZE];
	int64_t rest_ms; /* it ends when nobody has used it for so long */
	int listen_fd;
};
/* From here on a process that borrows the session waits.  ERR_BUSY: another
 * process has claimed it.  One of the other two functions ends the claim. */
int session_holder_claim(struct api_app *app, struct session_claim *claim,
    struct err *err);
int session_holder_start_claimed(struct api_app *app, struct lease *lease,
    int64_t ttl_ms, struct session_claim *claim, struct err *err);
void session_holder_disclaim(struct api_app *app, struct session_claim *claim);

/* At the start: remove the sockets of holders that died with their master. */
void session_holder_sweep(const char *folder);

/* A session's cell, for one request or several. */
struct session_borrowed {
	int cell_fd;
	int connection; /* to its holder; -1: it is not borrowed */
	bool lost; /* it is no good any more: returning it ends the session */
};
/* id: what a client has sent, here and below.  Wait at most wait_ms for those
 * who are before us, or until the client hangs up, whose connection it is; -1:
 * nobody's.  -1 with ERR_NOT_FOUND: there is no such session; with ERR_TIMEOUT:
 * its cell was not to be had, or too many wait. */
int session_holder_borrow(const struct api_app *app, const char *id, int client,
    int wait_ms, struct session_borrowed *b, struct err *err);
/* Give it back, between two requests to the cell. */
void session_holder_return(struct session_borrowed *b);
/* End the session; returns when it has ended.  False: there is none. */
bool session_holder_end(const struct api_app *app, const char *id);

/* A session is at rest between two commands.  After so long it gives way to a
 * new one of the same owner's. */
#define SESSION_REST_MS 10000
/* Let the session of app->owner's go that has been at rest for the longest
 * time, if that is long enough; returns when it has ended.  End: false to ask
 * only whether there is one.  False: none gives way, and *next_ms is when one
 * may, or will be at its end. */
bool session_holder_make_room(const struct api_app *app, bool end,
    int64_t *next_ms);

/*
 * A cell for a session of so long a time.  Where all are taken by sessions, the
 * one of the same owner's that has been at rest for the longest time ends for
 * it.  interpreter NULL: the default one.
 *
 * REFUSAL_NONE: the lease is for session_holder_start(), or to be closed.
 * Otherwise err says why, *next_ms in how long it may be had; who asked may be
 * gone.
 */
enum refusal session_cell_lease(struct api_app *app, struct http_request *req,
    const char *interpreter, int64_t ttl_ms, struct lease *lease,
    int64_t *next_ms, struct err *err);

#endif
