/* SPDX-License-Identifier: MIT */
#ifndef LIBRE_SEAL_H
#define LIBRE_SEAL_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/*
 * A text that a client keeps for us and can neither read nor change:
 * crypto_secretbox of libsodium, in base64url.
 */
#define LIBRE_SEAL_KEY_LEN 32
/* Bytes of the token for so many of the text. */
#define LIBRE_SEALED_LEN(len) (((len) + 24 + 16) * 4 / 3 + 4)

/* Append the token. */
void libre_seal(struct buf *out, const char *text, size_t len,
    const unsigned char key[LIBRE_SEAL_KEY_LEN]);
/* Append the text.  False: nobody with this key has made that token. */
bool libre_unseal(struct buf *out, const char *token, size_t len,
    const unsigned char key[LIBRE_SEAL_KEY_LEN]);

#endif
