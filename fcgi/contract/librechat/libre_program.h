/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_PROGRAM_H
#define LIBRE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/librechat/libre_request.h"

#include "base/basics.h"

/*
 * A text that a client keeps for us and can neither read nor change:
 * crypto_secretbox of libsodium, in base64url.
 */
#define LIBRE_SEAL_KEY_LEN 32
/* Bytes of a token whose text has len bytes. */
#define LIBRE_SEALED_LEN(len) (((len) + 24 + 16) * 4 / 3 + 4)

/*
 * POST /exec/programmatic: a program that calls the client's tools.  It runs
 * from its start in each round, with the results of the rounds before.  All
 * that is known of it travels with the client, sealed.
 */
#define LIBRE_TOOLS_MAX 100
#define LIBRE_TOOL_NAME_MAX 256 /* bytes */
#define LIBRE_ROUNDS_MAX 20	/* with calls */
#define LIBRE_STATE_MAX ((size_t)1 << 20)
#define LIBRE_STATE_TOO_LARGE "The state of this program is too large"
#define LIBRE_STATE_MS INT64_C(900000)
#define LIBRE_CALLS_MAX 256		    /* of one round */
#define LIBRE_CALLS_BYTES ((size_t)1 << 20) /* of their file */
#define LIBRE_TOKEN_TEXT_MAX LIBRE_SEALED_LEN(LIBRE_STATE_MAX)

/* The client of a request, and its time. */
struct libre_asked {
	const unsigned char *key;   /* LIBRE_SEAL_KEY_LEN bytes */
	const unsigned char *owner; /* LIBRE_OWNER_LEN bytes */
	int64_t now_ms;		    /* wall clock */
	const char *session;	    /* for a program that begins: an id */
};
#define LIBRE_OWNER_LEN 32

/* libre_program_release() releases it; all zero there is nothing. */
struct libre_program {
	struct libre_exec exec; /* the run; exec.place has the rest */
	json_t *state;		/* an object; owned */
	struct buf text;	/* the same as JSON, for the run */
	struct buf shell;	/* bash: the code that exec.code is */
	int64_t round;		/* from 1 on */
	char session[LIBRE_ID_LEN + 1];
};

/* Parse a first request, or one that goes on.  A NUL follows the body.  False:
 * the status to answer with and the error's text (a buffer of LIBRE_ERROR_MAX);
 * nothing is to be released. */
bool libre_program_parse(struct libre_program *p, const char *body, size_t len,
    const struct libre_asked *asked, int *status, struct buf *error);
void libre_program_release(struct libre_program *p);

/* Read LIBRE_CALLS_FILE of a run, which is as hostile as the run is: its calls
 * as a list for the client, each with an id, which the caller owns.  NULL: the
 * text of the error (LIBRE_ERROR_MAX). */
json_t *libre_calls_read(const struct libre_program *p, const char *text,
    size_t len, struct buf *error);
/* Append the token to go on with.  False: the state is too large. */
bool libre_program_seal(const struct libre_program *p,
    const struct libre_asked *asked, json_t *calls, struct buf *token);

/* Files in the folder exec.place of a run. */
#define LIBRE_HELPER_FILE "libre_helper.py"
#define LIBRE_STATE_FILE "state.json"
#define LIBRE_CALLS_FILE "calls.json"
/* The first of them: libre_helper.py, a NUL follows. */
extern const char libre_helper[];
extern const size_t libre_helper_len;

#endif
