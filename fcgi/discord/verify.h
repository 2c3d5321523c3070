/* SPDX-License-Identifier: MIT */
#ifndef VERIFY_H
#define VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Does a request come from Discord?  Pure functions over bytes: no clock, no
 * database, no JSON.  The signature is Ed25519 over the timestamp header
 * followed by the body, exactly as they came.
 */
#define VERIFY_KEY_LEN 32

struct verify_key {
	unsigned char bytes[VERIFY_KEY_LEN];
};

/* Decode DISCORD_PUBLIC_KEY (64 hex digits).  False: it is not a key. */
bool verify_key_decode(struct verify_key *key, const char *hex);

/* NULL: it does, and *signed_at is the timestamp in Unix seconds.  Otherwise a
 * word for answer and log, and *signed_at is untouched: "no-timestamp"
 * (missing, or not exactly 10 ASCII digits), "no-signature" (missing, or not
 * exactly 128 hex digits), "no-body" (empty) or "wrong-signature" (well-formed,
 * but not of this).  The two headers may be NULL (absent). */
const char *verify_request(const struct verify_key *key, const char *timestamp,
    const char *signature, const void *body, size_t len, int64_t *signed_at);

#endif
