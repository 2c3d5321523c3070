/* SPDX-License-Identifier: MIT */
#ifndef LIBRECHAT_WHO_H
#define LIBRECHAT_WHO_H

#include <stdbool.h>

#include "api/gate.h"
#include "contract/librechat/libre_message.h"
#include "files/filestore.h"

struct api_app;
struct err;
struct http_request;

/*
 * The sender of a LibreChat request, and the owner of a file.
 */

/* At the start: the keys of IL_LIBRECHAT_KEYS_FILE, if it is set.  ERR_CONFIG:
 * they cannot be read. */
int librechat_open(struct api_app *app, struct err *err);

/* By an API key, which is a bearer token of ours, by a token that LibreChat has
 * signed, or by neither where that is allowed. */
enum gate_who librechat_identify(struct api_app *app, struct http_request *req,
    bool foreign, struct token *token);

/* The key that seals the state that clients keep for us.  It lies in the
 * store's folder from its first use on, so that a restart ends no program;
 * where that cannot be, all of this il-api has the same one until it ends.
 * Several nodes have the same one, of IL_NODES_KEY_FILE. */
const unsigned char *librechat_seal(struct api_app *app);

/* ---- cancels ---- */

/*
 * POST /librechat/exec/programmatic/cancel ends the run of a call that has sent
 * an id of its own, X-LibreChat-Code-Request-ID.  All processes share a table
 * of runs and cancels.  A cancel signals the process of the run, and stays for
 * minutes, so a call that arrives after its cancel does not begin.
 */

/* May the client name a call so?  id may be NULL. */
bool librechat_is_call_id(const char *id);
/* The run of a call begins; from now on a cancel makes the client of that
 * connection count as gone.  The run ends in either case.  False: it was
 * cancelled before it began, or meanwhile. */
bool librechat_call_begin(const struct api_app *app, const char *id, int fd);
bool librechat_call_end(const struct api_app *app);
/* Cancel the call of that id, now or when it comes.  True: it is running. */
bool librechat_cancel(const struct api_app *app, const char *id);

/* ---- files ---- */

/* The note of a file in the store: its session, and 'r' where a run may not
 * change it. */
#define LIBRECHAT_READ_ONLY 'r'

/* A new session, which is a name that files have in common. */
void librechat_make_session(const struct api_app *app,
    char session[LIBRE_ID_LEN + 1]);

/* The files of a resource are its own; a user's are the sender's.  The store
 * sees these alone until the request ends. */
void librechat_use(struct api_app *app, const struct libre_resource *resource);

/* Is it a file of that session? */
bool librechat_is_of(const struct filestore_entry *entry, const char *session);

/* Open a file of that session.  A descriptor, whereupon the entry's name is to
 * be freed; or -1: it is not there for the sender, or cannot be had now. */
int librechat_file(struct api_app *app, const struct http_request *req,
    const char *session, const char *id, struct filestore_entry *entry);

#endif
