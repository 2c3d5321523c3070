/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_token.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/text.h"

#define KEY_TEXT_MAX 127
#define ISSUER "librechat"
#define AUDIENCE "codeapi"

/* The bytes before the 32 of an Ed25519 key in a PEM file (RFC 8410). */
static const unsigned char spki[] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b,
	0x65, 0x70, 0x03, 0x21, 0x00 };

/* ---- keys ---- */

/* Decode a key in any of the forms of base64 that are in use. */
static bool
decode_key(const char *text, unsigned char key[LIBRE_KEY_LEN])
{
	char bytes[KEY_TEXT_MAX];
	size_t len = 0;

	if (!base64_decode(text, strlen(text), false, bytes, &len) ||
	    (len != LIBRE_KEY_LEN &&
		(len != sizeof(spki) + LIBRE_KEY_LEN ||
		    memcmp(bytes, spki, sizeof(spki)) != 0)))
		return false;
	memcpy(key, bytes + len - LIBRE_KEY_LEN, LIBRE_KEY_LEN);
	return true;
}

int
libre_keys_parse(struct libre_keys *keys, const char *text, struct err *err)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;
	char *line;

	keys->count = 0;
	for (int number = 1; (line = strsep(&rest, "\n")) != NULL; number++) {
		struct libre_key *key = &keys->items[keys->count];
		char value[KEY_TEXT_MAX + 1];
		char more[2];

		if (line[0] == '#' || line[strspn(line, " \t\r")] == '\0')
			continue;
		if (keys->count == LIBRE_KEYS_MAX)
			return err_set(err, ERR_CONFIG, "more than %d keys",
			    LIBRE_KEYS_MAX);
		if (sscanf(line, "%65s %127s %1s", key->kid, value, more) !=
			2 ||
		    !text_is_name(key->kid, LIBRE_KID_MAX) ||
		    !decode_key(value, key->key))
			return err_set(err, ERR_CONFIG,
			    "line %d: not KID and an Ed25519 key", number);
		keys->count++;
	}
	return keys->count > 0 ? 0 :
				 err_set(err, ERR_CONFIG, "there is no key");
}

/* ---- the parts of a token ---- */

/* Decode base64url without padding, and nothing else. */
static bool
token_decode(const char *text, size_t len, void *out, size_t max, size_t *n)
{
	return sodium_base642bin(out, max, text, len, NULL, n, NULL,
		   sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0;
}

/* Read a part, which is an object.  On false there is nothing to release. */
static bool
parse_part(struct jtree *doc, const char *text, size_t len)
{
	char json[LIBRE_TOKEN_MAX + 1] = "";
	struct jtree_error error;
	size_t n = 0;

	if (!token_decode(text, len, json, LIBRE_TOKEN_MAX, &n) ||
	    !jtree_parse(doc, json, n, &error))
		return false;
	if (!json_is_object(doc->root))
		jtree_release(doc);
	return doc->root != NULL;
}

/* Find the key that signed it, by its name; a token without one fits a single
 * key. */
static const struct libre_key *
find_key(const struct libre_keys *keys, const json_t *header,
    struct api_error *error)
{
	const json_t *alg = json_object_get(header, "alg");
	const json_t *typ = json_object_get(header, "typ");
	const json_t *kid = json_object_get(header, "kid");
	const char *why = "of a key that is not known here";

	if (!jtree_is(alg, "EdDSA"))
		why = jtree_is(alg, "RS256") ?
		    LIBRE_TOKEN_RS256 :
		    "signed with something else than EdDSA";
	else if (json_object_get(header, "crit") != NULL ||
	    (typ != NULL && !jtree_is(typ, "JWT")))
		why = "it asks for more than is known here";
	else if (kid == NULL && keys->count == 1)
		return &keys->items[0];
	else
		for (size_t i = 0; i < keys->count; i++)
			if (jtree_is(kid, keys->items[i].kid))
				return &keys->items[i];
	(void)api_error_set(error, 401, "%s", why);
	return NULL;
}

/* ---- claims ---- */

#define AT(member) offsetof(struct libre_claims, member)

static const struct field claim_rows[] = {
	{ "iss", FIELD_STRING, AT(issuer), .required = true },
	{ "aud", FIELD_ANY, AT(audience), .required = true },
	{ "sub", FIELD_WORD, AT(subject), .required = true,
	    .max = LIBRE_CLAIM_MAX },
	{ "tenant_id", FIELD_WORD, AT(tenant), .nullable = true,
	    .max = LIBRE_CLAIM_MAX },
	{ "exp", FIELD_NUMBER, AT(ends), .required = true },
	{ "nbf", FIELD_NUMBER, AT(begins), .required = false },
	{ "iat", FIELD_NUMBER, AT(made), .required = false },
	{ .name = NULL },
};

/* Is it for us alone, or for us among others? */
static bool
token_is_for(const json_t *value)
{
	bool found = jtree_is(value, AUDIENCE);

	for (size_t i = 0; i < json_array_size(value) && !found; i++)
		found = jtree_is(json_array_get(value, i), AUDIENCE);
	return found;
}

/* The fault of the claims; NULL: none.  Two texts that were no UTF-8 could be
 * the same by now: neither names anybody. */
static const char *
check_claims(const struct libre_claims *c, int64_t now)
{
	const double now_s = (double)now;

	if (strcmp(c->issuer, ISSUER) != 0)
		return "of another issuer";
	if (!token_is_for(c->audience))
		return "for another audience";
	if (c->ends < now_s - LIBRE_SKEW_S + 1)
		return "expired";
	if (c->ends >= now_s + LIBRE_LIFE_S + LIBRE_SKEW_S + 1)
		return "it would last longer than any that LibreChat makes";
	if (c->begins >= now_s + LIBRE_SKEW_S + 1)
		return "not valid yet";
	if (c->made >= now_s + LIBRE_SKEW_S + 1)
		return "made in the future";
	if (strstr(c->subject.data, "\xef\xbf\xbd") != NULL ||
	    strstr(c->tenant.data, "\xef\xbf\xbd") != NULL)
		return "its user or tenant is no text";
	return NULL;
}

bool
libre_token_check(struct libre_claims *claims, const struct libre_keys *keys,
    int64_t now_s, const char *token, struct api_error *error)
{
	const char *dot = strchr(token, '.');
	const char *second = dot == NULL ? NULL : strchr(dot + 1, '.');
	unsigned char signature[crypto_sign_BYTES];
	const struct libre_key *key;
	const char *why;
	struct jtree doc;
	size_t n = 0;

	*claims = (struct libre_claims){ .tenant = { "", 0 } };
	if (strlen(token) > LIBRE_TOKEN_MAX)
		return api_error_set(error, 401, "too long");
	if (second == NULL || !parse_part(&doc, token, (size_t)(dot - token)))
		return api_error_set(error, 401, "no token at all");
	key = find_key(keys, doc.root, error);
	jtree_release(&doc);
	if (key == NULL)
		return false;
	if (!token_decode(second + 1, strlen(second + 1), signature,
		sizeof(signature), &n) ||
	    n != sizeof(signature) ||
	    crypto_sign_verify_detached(signature, (const unsigned char *)token,
		(unsigned long long)(second - token), key->key) != 0)
		return api_error_set(error, 401, "its signature is wrong");
	if (!parse_part(&claims->doc, dot + 1, (size_t)(second - dot - 1)))
		return api_error_set(error, 401, "its claims are no JSON");
	if (fields_accept(&claims->doc, claim_rows, claims, error)) {
		why = check_claims(claims, now_s);
		if (why == NULL)
			return true;
		(void)api_error_set(error, 401, "%s", why);
	}
	jtree_release(&claims->doc);
	return false;
}
