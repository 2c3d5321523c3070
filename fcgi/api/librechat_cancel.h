/* SPDX-License-Identifier: MIT */
#ifndef LIBRECHAT_CANCEL_H
#define LIBRECHAT_CANCEL_H

#include <stdbool.h>

struct api_app;
struct http_request;

/*
 * POST /librechat/exec/programmatic/cancel ends the run of a call that has sent
 * an id of its own, X-LibreChat-Code-Request-ID.  A call has a file in a folder
 * that il-api alone may enter; its name follows from the id and the owner.  The
 * run locks and watches that file, and a cancel writes a byte into it.  The
 * byte stays for minutes, so a call that arrives after its cancel does not
 * begin.
 */
struct librechat_call {
	int cancelled_fd; /* readable once the run is to end; -1: never */
	int file_fd;	  /* -1: none */
	char *path;
};

#define LIBRECHAT_CALL_INIT \
	{ \
		-1, -1, NULL \
	}

/* False: the call was cancelled before it began.  A call without an id, or
 * whose file cannot be made, cannot be cancelled. */
bool librechat_call_open(struct librechat_call *call, const struct api_app *app,
    const struct http_request *req);
void librechat_call_close(struct librechat_call *call);

/* Remove the files that calls and cancels of minutes ago have left. */
void librechat_cancel_sweep(const struct api_app *app);

#endif
