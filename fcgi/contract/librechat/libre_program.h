/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_PROGRAM_H
#define LIBRE_PROGRAM_H

#include "contract/librechat/libre_message.h"

/*
 * POST /exec/programmatic: a program that calls the client's tools.  It runs
 * from its start in each round, with the results of the rounds before.  All
 * that is known of it travels with the client, in a token that it can neither
 * read nor change: crypto_secretbox of libsodium, in base64url.
 */
#define LIBRE_SEAL_KEY_LEN 32
#define LIBRE_OWNER_LEN 32
#define LIBRE_ROUNDS_MAX 20 /* with calls */
#define LIBRE_STATE_MAX ((size_t)1 << 20)
#define LIBRE_STATE_TOO_LARGE "The state of this program is too large"
#define LIBRE_STATE_MS INT64_C(900000)
#define LIBRE_CALLS_BYTES ((size_t)1 << 20) /* of a round's file of calls */
#define LIBRE_TOKEN_TEXT_MAX ((LIBRE_STATE_MAX + 24 + 16) * 4 / 3 + 4)

/* The client of a request, and its time. */
struct libre_asked {
	const unsigned char *key;   /* LIBRE_SEAL_KEY_LEN bytes */
	const unsigned char *owner; /* LIBRE_OWNER_LEN bytes */
	int64_t now_ms;		    /* wall clock */
	const char *session;	    /* for a program that begins: an id */
};

/* libre_program_release() releases it; all zero there is nothing. */
struct libre_program {
	struct libre_exec exec; /* the run; and a place for the rest */
	json_t *state;		/* an object; owned */
	struct buf text;	/* the same as JSON, for the run */
	struct buf shell;	/* bash: the code that exec.code is */
	int64_t round;		/* from 1 on */
	/* Where the run has the helper and the state, and leaves its calls. */
	const char *helper_path;
	const char *state_path;
	const char *calls_path;
	char session[LIBRE_ID_LEN + 1];
};

/* Parse a first request, or one that goes on.  A NUL follows the body.  False:
 * nothing is to be released. */
bool libre_program_parse(struct libre_program *p, const char *body, size_t len,
    const struct libre_asked *asked, struct api_error *error);
void libre_program_release(struct libre_program *p);

/* Read what a run leaves at calls_path, which is as hostile as the run is: its
 * calls as a list for the client, each with an id, which the caller owns.
 * NULL: the error is set, to LIBRE_FAILED or more. */
json_t *libre_calls_read(const struct libre_program *p, const char *text,
    size_t len, struct api_error *error);
/* Append the token to go on with.  False: the state is too large. */
bool libre_program_seal(const struct libre_program *p,
    const struct libre_asked *asked, json_t *calls, struct buf *token);

/* libre_helper.py, a NUL follows. */
extern const char libre_helper[];
extern const size_t libre_helper_len;

#endif
