/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_TOKEN_H
#define LIBRE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/json.h"

#include "base/basics.h"
#include "protocol/cell.h"

/*
 * The tokens that LibreChat makes for its users: JSON Web Tokens (RFC 7519),
 * signed with Ed25519 ("EdDSA", RFC 8037).  The signature is checked before
 * anything of the claims is parsed.
 */
#define LIBRE_TOKEN_MAX 8192 /* bytes of a token */
#define LIBRE_CLAIM_MAX 256  /* bytes of a user's name, or a tenant's */
/* Clocks may differ by so much; and LibreChat makes no token for longer. */
#define LIBRE_SKEW_S 30
#define LIBRE_LIFE_S 300

/* ---- keys ---- */

#define LIBRE_KEYS_MAX 16
#define LIBRE_KID_MAX 64
#define LIBRE_KEY_LEN 32

struct libre_key {
	char kid[LIBRE_KID_MAX + 2]; /* [A-Za-z0-9._-] */
	unsigned char key[LIBRE_KEY_LEN];
};

struct libre_keys {
	struct libre_key items[LIBRE_KEYS_MAX];
	size_t count;
};

/* The text of a file: a line for each key, `KID KEY`.  KEY is the public key in
 * base64 or base64url: its 32 bytes ("x" of a JWK), or these in the form that
 * is the one line of base64 in a PEM file.  Blank lines and lines that begin
 * with '#' are skipped.  ERR_CONFIG: what is wrong, and in which line. */
int libre_keys_parse(struct libre_keys *keys, const char *text,
    struct err *err);

/* ---- a token ---- */

struct libre_claims {
	const char *issuer;
	const json_t *audience;
	struct cell_bytes subject;
	struct cell_bytes tenant; /* "": none */
	double ends; /* Unix seconds, which may have a fraction, as all three */
	double begins;
	double made;
	struct jtree doc; /* owns all of these; to be released */
};

/* The refusal of an algorithm that LibreChat can be set to. */
#define LIBRE_TOKEN_RS256 \
	"signed with RS256; only EdDSA is taken: set " \
	"CODEAPI_JWT_ALGORITHM=EdDSA and an Ed25519 key in LibreChat"

/* False: the error's text says why it is not good, for the log.  Nothing is to
 * be released then. */
bool libre_token_check(struct libre_claims *claims,
    const struct libre_keys *keys, int64_t now_s, const char *token,
    struct api_error *error);

#endif
