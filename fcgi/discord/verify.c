/* SPDX-License-Identifier: MIT */
#include "discord/verify.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

/* With a fixed length the boundary to the body cannot be shifted; 10 digits
 * last until the year 2286. */
#define TIMESTAMP_LEN 10

_Static_assert(VERIFY_KEY_LEN == crypto_sign_PUBLICKEYBYTES, "key length");

bool
verify_key_decode(struct verify_key *key, const char *hex)
{
	return text_parse_hex(hex, strlen(hex), key->bytes, VERIFY_KEY_LEN);
}

const char *
verify_request(const struct verify_key *key, const char *timestamp,
    const char *signature, const void *body, size_t len, int64_t *signed_at)
{
	unsigned char sig[crypto_sign_BYTES];
	auto_free unsigned char *message = NULL;

	if (timestamp == NULL || strlen(timestamp) != TIMESTAMP_LEN ||
	    strspn(timestamp, "0123456789") != TIMESTAMP_LEN)
		return "no-timestamp";
	if (signature == NULL ||
	    !text_parse_hex(signature, strlen(signature), sig, sizeof(sig)))
		return "no-signature";
	if (len == 0)
		return "no-body";
	message = xmalloc(TIMESTAMP_LEN + len);
	memcpy(message, timestamp, TIMESTAMP_LEN);
	memcpy(message + TIMESTAMP_LEN, body, len);
	if (crypto_sign_verify_detached(sig, message, TIMESTAMP_LEN + len,
		key->bytes) != 0)
		return "wrong-signature";
	*signed_at = strtoll(timestamp, NULL, 10);
	return NULL;
}
