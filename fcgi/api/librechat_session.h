/* SPDX-License-Identifier: MIT */
#ifndef LIBRECHAT_SESSION_H
#define LIBRECHAT_SESSION_H

#include <stdbool.h>

#include "session_holder.h"

struct api_app;
struct http_request;

/*
 * The cell that the runs of a conversation have in common, one at a time: its
 * work folder stays from one to the next.  It ends when none has come for
 * IL_LIBRECHAT_REST_SECONDS, or when another session of the same owner's needs
 * room.
 */
struct libre_session {
	char id[SESSION_ID_SIZE];
	bool fresh;	/* it was made for this run */
	int connection; /* -1: there is none, and a run has one of its own */
	int cell_fd;
	bool used; /* by a run, to its end */
};

/* Borrow it, where it is to be had.  hint NULL: the conversation is not known.
 */
void librechat_session_borrow(struct libre_session *s, struct api_app *app,
    struct http_request *req, const char *hint);
/* Give it back; lost: it is no good any more, and ends. */
void librechat_session_return(struct libre_session *s, bool lost);

#endif
