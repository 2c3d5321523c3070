/* SPDX-License-Identifier: MIT */
#ifndef GATE_H
#define GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/tokens.h"

struct api_app;
struct buf;
struct err;
struct http_request;

/*
 * Permission to use il-api, and its limits.  Where IL_API_TOKENS_FILE names
 * tokens, a request needs one.  The file is checked for each request: a token
 * that was revoked, added or given other limits counts from the next request
 * on.  Requests under way go on.
 */

enum gate_use {
	GATE_OPEN,    /* needs no token */
	GATE_GLANCE,  /* needs a token and no cell */
	GATE_CELL,    /* needs a cell */
	GATE_SESSION, /* needs a cell, maybe that of a session at rest */
	GATE_COMMAND, /* a command in a session */
};

enum gate_who {
	GATE_REFUSED, /* it was answered */
	GATE_ANYBODY, /* may use it without credentials */
	GATE_KNOWN,   /* the token is set: identity and limits */
};

/* An authentication scheme: how the sender of a request is found; foreign: from
 * another machine.  This one is that of all contracts but LibreChat's: a bearer
 * token of IL_API_TOKENS_FILE. */
enum gate_who gate_by_token(struct api_app *app, struct http_request *req,
    bool foreign, struct token *token);
/* The token of an Authorization header, in the file as it is now; NULL: it is
 * unknown.  Only where IL_API_TOKENS_FILE is set. */
const struct token *gate_find_token(struct api_app *app,
    const char *authorization);

/* nginx marks a request that may come from another machine. */
bool gate_is_foreign(const struct http_request *req);
/* Count a request with an unknown token for its address, if it came from
 * another machine.  True: that address has sent too many, which was answered.
 */
bool gate_refuse_stranger(struct api_app *app, struct http_request *req);

/* True: the request may go on, app->owner and app->slot are set, and
 * gate_leave() ends it.  False: it was answered. */
bool gate_enter(struct api_app *app, struct http_request *req,
    enum gate_use use, __typeof__(gate_by_token) *scheme);
void gate_leave(struct api_app *app);
/* After GATE_GLANCE: claim a slot for another use, until gate_leave().  False:
 * the token has none left; not answered. */
bool gate_claim(struct api_app *app, struct http_request *req,
    enum gate_use use);
/* For GATE_OPEN: is the request from this machine, or has it a token?  Not
 * counted. */
bool gate_knows(struct api_app *app, const struct http_request *req);

/* ---- limits of tokens ---- */

/*
 * Usage of each bearer token, counted over all processes of il-api that are
 * forked after limits_open().  A process that is killed leaves nothing behind:
 * a slot is a lock that the kernel releases with its last descriptor, which the
 * broker has while a session is parked, and a rate is one number, changed in
 * one step.
 */
struct limits {
	const char *path; /* borrowed: a file of nothing but locks */
	struct limits_rate *rates;
	struct limits_rate *strangers; /* apart from the rates of tokens */
};

#define LIMITS_NONE (-2)

/* limits and the path live as long as the process.  The file of the slots
 * outlives il-api, as sessions do. */
int limits_open(struct limits *limits, const char *path, struct err *err);

/* A request at this time (monotonic milliseconds).  0: it may go on, and was
 * counted if `count` says so; otherwise the number of seconds until the next
 * one may.  A token may send token->rate requests at once, and as many in each
 * minute after that. */
int64_t limits_request(struct limits *limits, const struct token *token,
    int64_t now_ms, bool count);

/* A request with an unknown token from this address (IPv4, or IPv6, where a
 * network of 64 bits is one address).  0: answer it; otherwise the number of
 * seconds until it may ask again. */
int64_t limits_stranger(struct limits *limits, const char *address,
    int64_t now_ms);
#define LIMITS_STRANGER_RATE 60 /* at once, and then in each minute */

/* Kinds of slots; a token has token->cells slots of each. */
enum limits_kind {
	LIMITS_CELL,	     /* runs and sessions: a cell each */
	LIMITS_CONVERSATION, /* a session that LibreChat's runs share */
	LIMITS_COMMAND,	     /* in sessions: a process of il-api each */
	LIMITS_SHARED,	     /* of limits_claim_shared(), as the next */
	LIMITS_READER,
};

/* Claim one of token->cells slots.  The slot is free again when the descriptor
 * and all its copies are closed.  -1: all are in use.  LIMITS_NONE: the token
 * has no limit below most, the number that there can be. */
int limits_claim_slot(const struct limits *limits, const struct token *token,
    enum limits_kind kind, int64_t most);

/* Claim one of count slots that all clients share; -1: all are in use. */
int limits_claim_shared(const struct limits *limits, enum limits_kind kind,
    int64_t count);

/* ---- answers ---- */

/*
 * Answers in the shape of the contracts, for the gate and all routes: JSON and
 * refusals.  headers: each with "\r\n" at its end; NULL: none.
 */
#define REPLY_JSON "application/json"
/* http_says() it where the answer may say more than its contract has. */
#define REPLY_EXTRAS "HTTP_INLINE_EXTRAS"
/* The header with the interpreter that stands in for a missing one. */
#define REPLY_STANDS_IN "Inline-Interpreter: %s\r\n"

void reply_text(struct http_request *req, int status, const char *headers,
    const char *json);
/* The same with a buffer; releases it. */
void reply_json(struct http_request *req, int status, const char *headers,
    struct buf *body);
/* The same with a value; releases it. */
void reply_value(struct http_request *req, int status, const char *headers,
    json_t *value);
/* Time to read an answer.  A file's reader has more: its size at 32 bytes a ms.
 */
#define REPLY_READER_MS 120000
/* A file, which is to be read in whole_ms; headers: further lines. */
void reply_file(struct http_request *req, const char *type, const char *headers,
    int fd, int64_t size, int64_t whole_ms);
/* The same as a download, disposition being the header that names it. */
void reply_download(struct http_request *req, const char *type,
    const char *disposition, int fd, int64_t size);
/* ---- refusals in the form of the request's contract; all other paths have the
 * code-interpreter's ---- */

/* The contract that a path belongs to. */
enum reply_contract {
	REPLY_EVAL,
	REPLY_PISTON,
	REPLY_LIBRECHAT,
	REPLY_MCP,
	REPLY_INTERPRETER,
};
enum reply_contract reply_contract(const char *path);
/* /eval answers with its title alone, but with the text for 403, 404 and 429.
 */
#define REPLY_NOT_FOUND "Not Found; /docs lists what there is"
void reply_refuse(struct http_request *req, int status, const char *headers,
    const char *text);
/* The same with Retry-After: the client may try again in so many seconds. */
void reply_later(struct http_request *req, int status, int64_t seconds,
    const char *text);
#define REPLY_BUSY "There is no cell to run it in just now"
/* 503 with Retry-After, in Piston's contract 429: there is no cell. */
void reply_busy(struct http_request *req);
/* 500. */
void reply_failed(struct http_request *req, const char *headers);

/* ---- of the code-interpreter's routes ---- */

/* {"detail": …} with a text. */
void reply_detail(struct http_request *req, int status, const char *headers,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- of /eval ---- */

/* The status as {"title": …}; description may be NULL. */
void reply_eval(struct http_request *req, int status, const char *headers,
    const char *description);

/* ---- of LibreChat's routes ---- */

/* {"error":…}, with details where they are not NULL. */
void reply_librechat(struct http_request *req, int status, const char *headers,
    const char *error, const char *details);
#endif
