#include "verify.h"

#include <string.h>

#include <sodium.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/text.h"

/* With a fixed length the boundary to the body cannot be shifted; 10 digits
 * last until the year 2286. */
#define TIMESTAMP_LEN 10

_Static_assert(VERIFY_KEY_LEN == crypto_sign_PUBLICKEYBYTES, "key length");

bool
verify_key_decode(struct verify_key *key, const char *hex)
{
	return text_parse_hex(hex, strlen(hex), key->bytes, VERIFY_KEY_LEN);
}

static bool
timestamp_parse(const char *text, int64_t *seconds)
{
	int64_t value = 0;

	if (text == NULL || strlen(text) != TIMESTAMP_LEN)
		return false;
	for (int i = 0; i < TIMESTAMP_LEN; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (text[i] - '0');
	}
	*seconds = value;
	return true;
}

enum verify_result
verify_request(const struct verify_key *key, const char *timestamp,
    const char *signature, const void *body, size_t len, int64_t *signed_at)
{
	unsigned char sig[crypto_sign_BYTES];
	auto_free unsigned char *message = NULL;
	int64_t seconds;

	if (!timestamp_parse(timestamp, &seconds))
		return VERIFY_NO_TIMESTAMP;
	if (signature == NULL ||
	    !text_parse_hex(signature, strlen(signature), sig, sizeof(sig)))
		return VERIFY_NO_SIGNATURE;
	if (len == 0)
		return VERIFY_NO_BODY;
	message = xmalloc(TIMESTAMP_LEN + len);
	memcpy(message, timestamp, TIMESTAMP_LEN);
	memcpy(message + TIMESTAMP_LEN, body, len);
	if (crypto_sign_verify_detached(sig, message, TIMESTAMP_LEN + len,
		key->bytes) != 0)
		return VERIFY_WRONG;
	*signed_at = seconds;
	return VERIFY_OK;
}

const char *
verify_result_name(enum verify_result result)
{
	switch (result) {
	case VERIFY_OK:
		return "ok";
	case VERIFY_NO_TIMESTAMP:
		return "no-timestamp";
	case VERIFY_NO_SIGNATURE:
		return "no-signature";
	case VERIFY_NO_BODY:
		return "no-body";
	case VERIFY_WRONG:
		return "wrong-signature";
	}
	return "?";
}
