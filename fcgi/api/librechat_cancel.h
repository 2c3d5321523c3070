/* SPDX-License-Identifier: MIT */
#ifndef LIBRECHAT_CANCEL_H
#define LIBRECHAT_CANCEL_H

struct api_app;
struct http_request;

/*
 * POST /librechat/exec/programmatic/cancel ends the run of a call that has said
 * its own id, X-LibreChat-Code-Request-ID.  The process of that run listens on
 * a socket whose name follows from the id, from who asks, and from a key of
 * il-api's: so nobody ends another one's, and with the process it is gone.  The
 * socket takes nothing but a word that follows from them as well, since all
 * users of the machine can see its name.
 */

/* A descriptor that can be read from once the run is to end; to be closed.  -1:
 * the call has no id, or another one has the same. */
int librechat_cancel_listen(struct api_app *app,
    const struct http_request *req);

#endif
