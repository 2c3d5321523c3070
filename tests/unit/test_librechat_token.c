/* SPDX-License-Identifier: MIT */
/* The tokens that LibreChat signs: what is taken, and why the rest is not. */
#include "contract/librechat/libre_token.h"

#include <sodium.h>

#include "base/basics.h"
#include "tap.h"

#define NOW 1786104000
#define HEADER "{\"alg\":\"EdDSA\",\"typ\":\"JWT\",\"kid\":\"k1\"}"
#define CLAIMS \
	"{\"iss\":\"librechat\",\"aud\":\"codeapi\",\"sub\":\"u\"," \
	"\"tenant_id\":\"t\",\"iat\":1786104000,\"nbf\":1786104000," \
	"\"exp\":1786104300,\"jti\":\"x\"}"

static unsigned char secret[crypto_sign_SECRETKEYBYTES];
static struct libre_keys keys;
static struct libre_claims claims;

static void
add_part(struct buf *out, const void *data, size_t len)
{
	char text[2 * LIBRE_TOKEN_MAX];

	(void)sodium_bin2base64(text, sizeof(text), data, len,
	    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	buf_adds(out, text);
}

/* A token with these parts, signed. */
static const char *
make(const char *header, const char *payload)
{
	static struct buf token = BUF_INIT(65536);
	unsigned char signature[crypto_sign_BYTES];

	buf_reset(&token);
	add_part(&token, header, strlen(header));
	buf_addc(&token, '.');
	add_part(&token, payload, strlen(payload));
	(void)crypto_sign_detached(signature, NULL,
	    (const unsigned char *)token.data, token.len, secret);
	buf_addc(&token, '.');
	add_part(&token, signature, sizeof(signature));
	return buf_str(&token);
}

static const char *
check(const char *token)
{
	static struct api_error why;

	jtree_release(&claims.doc);
	return libre_token_check(&claims, &keys, NOW, token, &why) ? NULL :
								     why.text;
}

/* Why claims are not taken that differ in one place. */
static const char *
check_claims(const char *old, const char *new)
{
	auto_buf struct buf text = BUF_INIT(65536);
	const char *at = strstr(CLAIMS, old);

	buf_add(&text, CLAIMS, (size_t)(at - CLAIMS));
	buf_adds(&text, new);
	buf_adds(&text, at + strlen(old));
	return check(make(HEADER, buf_str(&text)));
}

static void
test_good(void)
{
	is_str(check(make(HEADER, CLAIMS)), NULL, "a good one");
	is_str(claims.subject.data, "u", "its user");
	is_str(claims.tenant.data, "t", "its tenant");
	is_str(check_claims("\"tenant_id\":\"t\",", ""), NULL, "no tenant");
	is_str(claims.tenant.data, "", "that is none");
	is_str(check_claims("\"codeapi\"", "[\"x\",\"codeapi\"]"), NULL,
	    "for several");
	is_str(check_claims("1786104300", "1786104300.5"), NULL,
	    "a time with a fraction");
	is_str(check_claims("1786104300", "1786103971"), NULL,
	    "clocks that differ");
	is_str(check(make("{\"alg\":\"EdDSA\"}", CLAIMS)), NULL,
	    "of a single key that has no name");
}

static void
test_claims(void)
{
	static const char longer[] =
	    "it would last longer than any that LibreChat makes";

	is_str(check_claims("1786104300", "1786103970"), "expired", "its end");
	is_str(check_claims("\"exp\"", "\"ex\""), "exp is missing", "no end");
	is_str(check_claims("1786104300", "\"1786104300\""),
	    "exp must be a number", "a text for one");
	is_str(check_claims("1786104300", "1786104331"), longer, "a late end");
	is_str(check_claims("1786104300", "1e20"), longer,
	    "a number without one");
	is_str(check_claims("1786104300", "true"), "exp must be a number",
	    "no number");
	is_str(check_claims("\"nbf\":1786104000", "\"nbf\":1786104031"),
	    "not valid yet", "its beginning");
	is_str(check_claims("\"iat\":1786104000", "\"iat\":1786104031"),
	    "made in the future", "its making");
	is_str(check_claims("\"t\"", "\"\xff\""), "its claims are no JSON",
	    "no UTF-8");
	is_str(check_claims("\"u\"", "\"\\ud800\""),
	    "its user or tenant is no text", "half a character");
	is_str(check_claims("\"librechat\"", "\"other\""), "of another issuer",
	    "an issuer");
	is_str(check_claims("\"codeapi\"", "\"other\""), "for another audience",
	    "an audience");
	is_str(check_claims("\"codeapi\"", "[\"other\",1]"),
	    "for another audience", "other audiences");
	is_str(check_claims("\"codeapi\"", "\"codeapi\\u0000\""),
	    "for another audience", "a NUL in one");
	is_str(check_claims("\"sub\":\"u\"", "\"sub\":\"\""),
	    "sub must not be empty", "an empty user");
	is_str(check_claims("\"sub\":\"u\"", "\"sub\":1"),
	    "sub must be a string", "a number for a user");
	is_str(check_claims("\"t\"", "\"\""), "tenant_id must not be empty",
	    "an empty tenant");
}

static void
test_headers(void)
{
	static const char other[] = "signed with something else than EdDSA";

	is_str(check(make("{\"alg\":\"none\",\"kid\":\"k1\"}", CLAIMS)), other,
	    "none");
	is_str(check(make("{\"alg\":\"HS256\",\"kid\":\"k1\"}", CLAIMS)), other,
	    "a secret for a key");
	is_str(check(make("{\"alg\":\"RS256\",\"kid\":\"k1\"}", CLAIMS)),
	    LIBRE_TOKEN_RS256, "RSA");
	is_str(check(make("{\"kid\":\"k1\"}", CLAIMS)), other, "no algorithm");
	is_str(check(make("{\"alg\":\"EdDSA\",\"kid\":\"k2\"}", CLAIMS)),
	    "of a key that is not known here", "another key");
	is_str(check(make("{\"alg\":\"EdDSA\",\"kid\":1}", CLAIMS)),
	    "of a key that is not known here", "a number for a key");
	is_str(check(make("{\"alg\":\"EdDSA\",\"kid\":\"k1\",\"crit\":[]}",
		   CLAIMS)),
	    "it asks for more than is known here", "what must be understood");
	is_str(check(make("{\"alg\":\"EdDSA\",\"kid\":\"k1\",\"typ\":\"x\"}",
		   CLAIMS)),
	    "it asks for more than is known here", "another type");
	is_str(check(make("[]", CLAIMS)), "no token at all", "no object");
	is_str(check(make("{", CLAIMS)), "no token at all", "no JSON");
	is_str(check(make(HEADER, "{")), "its claims are no JSON",
	    "claims that are no JSON");
	is_str(check(make(HEADER, "[]")), "its claims are no JSON",
	    "claims that are no object");
}

static void
test_malformed(void)
{
	static const char wrong[] = "its signature is wrong";
	char token[LIBRE_TOKEN_MAX];
	char longest[LIBRE_TOKEN_MAX + 2] = "";
	char *dot;

	(void)snprintf(token, sizeof(token), "%s", make(HEADER, CLAIMS));
	dot = strrchr(token, '.');
	token[strlen(token) - 1] = '\0';
	is_str(check(token), wrong, "a short one");
	dot[1] = '\0';
	is_str(check(token), wrong, "an empty signature");
	dot[0] = '\0';
	is_str(check(token), "no token at all", "two parts");
	(void)snprintf(token, sizeof(token), "%s", make(HEADER, CLAIMS));
	token[strlen(token) - 3] ^= 1;
	is_str(check(token), wrong, "another signature");
	(void)snprintf(token, sizeof(token), "%s=", make(HEADER, CLAIMS));
	is_str(check(token), wrong, "padding");
	(void)snprintf(token, sizeof(token), "%s.x", make(HEADER, CLAIMS));
	is_str(check(token), wrong, "four parts");
	(void)snprintf(token, sizeof(token), "%s", make(HEADER, CLAIMS));
	token[0] = '*';
	is_str(check(token), "no token at all", "no base64");
	(void)snprintf(token, sizeof(token), "%s", make(HEADER, CLAIMS));
	strchr(token, '.')[5] ^= 1;
	is_str(check(token), wrong, "other claims");
	is_str(check(""), "no token at all", "nothing");
	is_str(check(".."), "no token at all", "dots");
	memset(longest, 'A', sizeof(longest) - 1);
	is_str(check(longest), "too long", "a long one");
	memset(secret, 1, sizeof(secret));
	is_str(check(make(HEADER, CLAIMS)), wrong, "signed by another");
}

static void
test_keys(void)
{
	static const char raw[] =
	    "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
	static const char url[] = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
	static const char pem[] =
	    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
	auto_buf struct buf text = BUF_INIT(65536);
	struct libre_keys got;
	struct err err;

	buf_addf(&text, "# keys\n\na %s\r\n\tb  %s\nc %s", raw, url, pem);
	is_int(libre_keys_parse(&got, buf_str(&text), &err), 0, "three forms");
	ok(got.count == 3 &&
		memcmp(got.items[0].key, got.items[1].key, LIBRE_KEY_LEN) ==
		    0 &&
		memcmp(got.items[0].key, got.items[2].key, LIBRE_KEY_LEN) == 0,
	    "of one key");
	is_str(got.items[1].kid, "b", "and its names");
	is_int(libre_keys_parse(&got, "a x\n", &err), -1, "no key");
	is_str(err.text, "line 1: not KID and an Ed25519 key", "says so");
	is_int(libre_keys_parse(&got, "# none\n", &err), -1, "nothing");
	is_str(err.text, "there is no key", "is too little");
	buf_reset(&text);
	for (int i = 0; i < 17; i++)
		buf_addf(&text, "k%d %s\n", i, raw);
	is_int(libre_keys_parse(&got, buf_str(&text), &err), -1, "seventeen");
	is_str(err.text, "more than 16 keys", "are too many");
	is_int(libre_keys_parse(&got,
		   "a/b 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrw"
		   "IaaPcHURo\n",
		   &err),
	    -1, "a name with a slash");
}

int
main(void)
{
	if (sodium_init() < 0)
		return 1;
	keys.count = 1;
	(void)snprintf(keys.items[0].kid, sizeof(keys.items[0].kid), "k1");
	(void)crypto_sign_keypair(keys.items[0].key, secret);
	test_good();
	test_claims();
	test_headers();
	test_keys();
	test_malformed();
	return tap_done();
}
