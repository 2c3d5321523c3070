/* SPDX-License-Identifier: MIT */
#ifndef GATE_H
#define GATE_H

#include <stdbool.h>

#include "protocol/tokens.h"

struct api_app;
struct http_request;

/*
 * Who may use il-api, and how much.  Where IL_API_TOKENS_FILE names tokens, a
 * request needs one; the file is looked at for each request, and so a token
 * that was revoked, added or given other limits counts from the next one on.
 * What is being answered goes on.
 */

enum gate_use {
	GATE_OPEN,    /* anybody may */
	GATE_GLANCE,  /* it asks for the token and takes no cell */
	GATE_CELL,    /* it takes a cell */
	GATE_SESSION, /* it takes a cell, maybe that of a session at rest */
	GATE_COMMAND, /* it is a command in a session */
};

enum gate_who {
	GATE_REFUSED, /* it was answered */
	GATE_ANYBODY, /* may come without credentials */
	GATE_KNOWN,   /* token says who, and how much */
};

/* How it is found out who sends a request; foreign: from elsewhere.  A contract
 * that does so in its own way has one of these (routes.c). */
struct gate_manner {
	enum gate_who (*identify)(struct api_app *app, struct http_request *req,
	    bool foreign, struct token *token);
};

/* All others': by a bearer token of IL_API_TOKENS_FILE. */
extern const struct gate_manner gate_by_token;
/* Whose an Authorization header is, as the file is now; NULL: nobody's.  For
 * where IL_API_TOKENS_FILE is set. */
const struct token *gate_find_token(struct api_app *app,
    const char *authorization);

/* nginx says of a request that anybody may have sent it. */
bool gate_is_foreign(const struct http_request *req);
/* Count a request whose token nobody has for its address, if another machine
 * sent it.  True: that address has sent too many, which was answered. */
bool gate_refuse_stranger(struct api_app *app, struct http_request *req);

/* True: it may go on, app->owner and app->slot are set, and gate_leave() ends
 * it.  False: it was answered. */
bool gate_enter(struct api_app *app, struct http_request *req,
    enum gate_use use, const struct gate_manner *manner);
void gate_leave(struct api_app *app);
/* Of who came in with GATE_GLANCE: take what the other use counts, until
 * gate_leave().  False: its token has all of it in use; not answered. */
bool gate_take(struct api_app *app, struct http_request *req,
    enum gate_use use);
/* Of who is let in without: is it from this machine, or has it a token?  Not
 * counted. */
bool gate_knows(struct api_app *app, const struct http_request *req);

#endif
