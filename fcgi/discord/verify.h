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

enum verify_result {
	VERIFY_OK,
	VERIFY_NO_TIMESTAMP, /* missing, or not exactly 10 ASCII digits */
	VERIFY_NO_SIGNATURE, /* missing, or not exactly 128 hex digits */
	VERIFY_NO_BODY,	     /* empty */
	VERIFY_WRONG,	     /* well-formed, but not the signature of this */
};

/* Decode DISCORD_PUBLIC_KEY (64 hex digits).  False: it is not a key. */
bool verify_key_decode(struct verify_key *key, const char *hex);

/* The two headers may be NULL (absent).  On VERIFY_OK *signed_at is the
 * timestamp in Unix seconds; otherwise it is untouched. */
enum verify_result verify_request(const struct verify_key *key,
    const char *timestamp, const char *signature, const void *body, size_t len,
    int64_t *signed_at);

/* "wrong-signature": for logs. */
const char *verify_result_name(enum verify_result result);

#endif
