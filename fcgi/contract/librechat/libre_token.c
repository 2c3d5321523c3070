/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_token.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "contract/json.h"

#include "base/basics.h"
#include "base/text.h"

/* The bytes before the 32 of an Ed25519 key in a PEM file (RFC 8410). */
static const unsigned char spki[] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b,
	0x65, 0x70, 0x03, 0x21, 0x00 };

/* ---- keys ---- */

/* Decode a key in any of the forms of base64 that are in use. */
static bool
decode_key(const char *text, unsigned char key[LIBRE_KEY_LEN])
{
	static const int variants[] = { sodium_base64_VARIANT_ORIGINAL,
		sodium_base64_VARIANT_ORIGINAL_NO_PADDING,
		sodium_base64_VARIANT_URLSAFE,
		sodium_base64_VARIANT_URLSAFE_NO_PADDING };
	unsigned char bytes[sizeof(spki) + LIBRE_KEY_LEN];
	size_t len = 0;

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		if (sodium_base642bin(bytes, sizeof(bytes), text, strlen(text),
			NULL, &len, NULL, variants[i]) != 0)
			continue;
		if (len == sizeof(bytes) &&
		    memcmp(bytes, spki, sizeof(spki)) == 0) {
			memcpy(key, bytes + sizeof(spki), LIBRE_KEY_LEN);
			return true;
		}
		if (len == LIBRE_KEY_LEN) {
			memcpy(key, bytes, LIBRE_KEY_LEN);
			return true;
		}
	}
	return false;
}

int
libre_keys_parse(struct libre_keys *keys, const char *text, struct err *err)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;
	char *words[3];
	int number = 0;
	size_t count;

	keys->count = 0;
	while ((count = text_next_words(&rest, &number, words, 3)) > 0) {
		struct libre_key *key = &keys->items[keys->count];

		if (keys->count == LIBRE_KEYS_MAX)
			return err_set(err, ERR_CONFIG, "more than %d keys",
			    LIBRE_KEYS_MAX);
		if (count != 2 || !text_is_name(words[0], LIBRE_KID_MAX) ||
		    !decode_key(words[1], key->key))
			return err_set(err, ERR_CONFIG,
			    "line %d: not KID and an Ed25519 key", number);
		(void)snprintf(key->kid, sizeof(key->kid), "%s", words[0]);
		keys->count++;
	}
	return keys->count > 0 ? 0 :
				 err_set(err, ERR_CONFIG, "there is no key");
}

/* ---- the parts of a token ---- */

/* base64url without padding, and nothing else. */
static bool
token_decode(const char *text, size_t len, void *out, size_t max, size_t *n)
{
	return sodium_base642bin(out, max, text, len, NULL, n, NULL,
		   sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0;
}

/* A part as an object.  False: it is none, and there is nothing to release. */
static bool
parse_part(struct jtree *doc, const char *text, size_t len)
{
	char json[LIBRE_TOKEN_MAX + 1];
	struct jtree_error error;
	size_t n = 0;

	if (!token_decode(text, len, json, LIBRE_TOKEN_MAX, &n))
		return false;
	json[n] = '\0';
	if (!jtree_parse(doc, json, n, &error))
		return false;
	if (json_is_object(doc->root))
		return true;
	jtree_release(doc);
	return false;
}

/* The key that signed it, by its name; a token without one fits a single key.
 * why: else. */
static const struct libre_key *
find_key(const struct libre_keys *keys, const json_t *header, const char **why)
{
	const char *kid = jtree_text(json_object_get(header, "kid"));

	*why = "signed with something else than EdDSA";
	if (jtree_is(json_object_get(header, "alg"), "RS256"))
		*why = LIBRE_TOKEN_RS256;
	if (!jtree_is(json_object_get(header, "alg"), "EdDSA"))
		return NULL;
	*why = "it asks for more than is known here";
	if (json_object_get(header, "crit") != NULL ||
	    (json_object_get(header, "typ") != NULL &&
		!jtree_is(json_object_get(header, "typ"), "JWT")))
		return NULL;
	*why = "of a key that is not known here";
	if (json_object_get(header, "kid") == NULL && keys->count == 1)
		return &keys->items[0];
	for (size_t i = 0; kid != NULL && i < keys->count; i++)
		if (strcmp(keys->items[i].kid, kid) == 0)
			return &keys->items[i];
	return NULL;
}

/* ---- claims ---- */

/* A time in Unix seconds, which may have a fraction. */
static bool
time_of(const json_t *claims, const char *name, int64_t *seconds)
{
	const json_t *value = json_object_get(claims, name);
	double number = json_number_value(value);

	if (!json_is_number(value) || number <= -1e15 || number >= 1e15)
		return false;
	*seconds = (int64_t)number;
	return true;
}

/* For us alone, or for us among others. */
static bool
token_is_for(const json_t *claims, const char *audience)
{
	const json_t *value = json_object_get(claims, "aud");
	bool found = jtree_is(value, audience);

	for (size_t i = 0; i < json_array_size(value) && !found; i++)
		found = jtree_is(json_array_get(value, i), audience);
	return found;
}

/* NULL: its time is now. */
static const char *
check_times(const json_t *claims, int64_t now_s)
{
	int64_t at;

	if (!time_of(claims, "exp", &at))
		return "it has no end";
	if (at <= now_s - LIBRE_SKEW_S)
		return "expired";
	if (at > now_s + LIBRE_LIFE_S + LIBRE_SKEW_S)
		return "it would last longer than any that LibreChat makes";
	if (json_object_get(claims, "nbf") != NULL &&
	    (!time_of(claims, "nbf", &at) || at > now_s + LIBRE_SKEW_S))
		return "not valid yet";
	if (json_object_get(claims, "iat") != NULL &&
	    (!time_of(claims, "iat", &at) || at > now_s + LIBRE_SKEW_S))
		return "made in the future";
	return NULL;
}

/* Copy a claim that fits.  Two texts that were no UTF-8 could be the same by
 * now: neither names anybody. */
static bool
copy_claim(char out[LIBRE_CLAIM_MAX + 1], const json_t *claims,
    const char *name)
{
	const char *text = jtree_text(json_object_get(claims, name));
	size_t len = text == NULL ? 0 : strlen(text);

	if (len == 0 || len > LIBRE_CLAIM_MAX ||
	    strstr(text, "\xef\xbf\xbd") != NULL)
		return false;
	memcpy(out, text, len + 1);
	return true;
}

static const char *
token_read_claims(struct libre_claims *out, const json_t *claims,
    const struct libre_expected *expected)
{
	const json_t *tenant = json_object_get(claims, "tenant_id");
	const char *why = NULL;

	if (!jtree_is(json_object_get(claims, "iss"), expected->issuer))
		why = "of another issuer";
	else if (!token_is_for(claims, expected->audience))
		why = "for another audience";
	else
		why = check_times(claims, expected->now_s);
	if (why != NULL)
		return why;
	out->tenant[0] = '\0';
	if (!copy_claim(out->subject, claims, "sub"))
		return "it names no user";
	if (!jtree_is_absent(tenant) &&
	    !copy_claim(out->tenant, claims, "tenant_id"))
		return "its tenant has no name";
	return NULL;
}

const char *
libre_token_check(struct libre_claims *claims,
    const struct libre_expected *expected, const char *token, size_t len)
{
	const char *dot = memchr(token, '.', len);
	const char *second = dot == NULL ?
	    NULL :
	    memchr(dot + 1, '.', len - (size_t)(dot + 1 - token));
	unsigned char signature[crypto_sign_BYTES];
	const struct libre_key *key;
	const char *why = NULL;
	struct jtree doc;
	size_t n = 0;

	if (len > LIBRE_TOKEN_MAX)
		return "too long";
	if (second == NULL || !parse_part(&doc, token, (size_t)(dot - token)))
		return "no token at all";
	key = find_key(expected->keys, doc.root, &why);
	jtree_release(&doc);
	if (key == NULL)
		return why;
	if (!token_decode(second + 1, len - (size_t)(second + 1 - token),
		signature, sizeof(signature), &n) ||
	    n != sizeof(signature) ||
	    crypto_sign_verify_detached(signature, (const unsigned char *)token,
		(unsigned long long)(second - token), key->key) != 0)
		return "its signature is wrong";
	if (!parse_part(&doc, dot + 1, (size_t)(second - dot - 1)))
		return "its claims are no JSON";
	why = token_read_claims(claims, doc.root, expected);
	jtree_release(&doc);
	return why;
}
