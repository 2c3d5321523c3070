/* SPDX-License-Identifier: MIT */
#ifndef BENCH_SIGN_H
#define BENCH_SIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/basics.h"

/*
 * Requests as Discord sends them, signed with a key of our own.
 */
#define SIGN_SEED_HEX 64

struct signer {
	unsigned char key[64];
	int64_t application;
	int64_t last_id;
};

/* False: the seed is not 64 hex digits, or libsodium does not start. */
bool signer_init(struct signer *signer, const char *seed, int64_t application);

/* Append a whole HTTP request. */
void sign_ping(struct signer *signer, struct buf *out);
/* `/il command` of a user.  code: its option, as the inside of a JSON string,
 * or NULL.  token: of the interaction, in the letters of base64url. */
void sign_command(struct signer *signer, struct buf *out, int64_t user,
    const char *command, const char *code, const char *token);

#endif
