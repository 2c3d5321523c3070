/* SPDX-License-Identifier: MIT */
#ifndef LIMITS_H
#define LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct token;

/*
 * What each bearer token may have, counted over all processes of il-api that
 * are forked after limits_open().  Nothing here can be left behind by a process
 * that is killed: a slot is a lock that the kernel takes back with the last
 * descriptor of it, and a rate is one number, changed in one step.
 */
struct limits {
	int slots; /* a file of nothing but locks */
	struct limits_rate *rates;
	struct limits_rate *strangers; /* they take no token's place */
};

#define LIMITS_NONE (-2)

/* For as long as the process lives. */
int limits_open(struct limits *limits, struct err *err);

/* A request at this time (monotonic milliseconds).  0: it may go on, and was
 * counted if count says so; otherwise in so many seconds the next one may.
 * token->rate may come at once, and as many in each minute after that. */
int64_t limits_request(struct limits *limits, const struct token *token,
    int64_t now_ms, bool count);

/* A request from this address (IPv4 or IPv6, of which a network of 64 bits is
 * one) whose token nobody has.  0: it may be told so; else it is to come again
 * in so many seconds. */
int64_t limits_stranger(struct limits *limits, const char *address,
    int64_t now_ms);
#define LIMITS_STRANGER_RATE 60 /* at once, and then in each minute */

/* What a token may have token->cells of at one time, each for itself. */
enum limits_kind {
	LIMITS_CELL,	     /* runs and sessions: a cell each */
	LIMITS_CONVERSATION, /* a session beside them, whose runs are those */
	LIMITS_COMMAND,	     /* in sessions: a process of il-api each */
	LIMITS_PLACE,	     /* of limits_take_place(), as the next */
	LIMITS_READER,
};

/* One of token->cells slots, as a descriptor: it is free again when that, and
 * all copies of it, are closed.  -1: all are taken.  LIMITS_NONE: the token has
 * no limit below most, which is as many as there can be. */
int limits_take_slot(const struct limits *limits, const struct token *token,
    enum limits_kind kind, int64_t most);

/* One of count places of a kind that all share, whoever asks, in the same way;
 * -1: all are taken. */
int limits_take_place(const struct limits *limits, enum limits_kind kind,
    int64_t count);

#endif
