/* SPDX-License-Identifier: MIT */
/* fcgi/discord/interaction.c: which requests Discord has signed. */
#include <string.h>

#include <sodium.h>

#include "discord/interaction.h"
#include "tap.h"

#define TIMESTAMP "1767225600"
#define BODY "{\"type\":1}"
#define UNTOUCHED 7

static struct interaction_key key;
static unsigned char secret[crypto_sign_SECRETKEYBYTES];
static char good[2 * crypto_sign_BYTES + 1];

/* Sign with the test key; hex into a buffer of 129 bytes. */
static void
sign(char *hex, const void *message, size_t len)
{
	unsigned char sig[crypto_sign_BYTES];

	(void)crypto_sign_detached(sig, NULL, message, len, secret);
	(void)sodium_bin2hex(hex, 2 * sizeof(sig) + 1, sig, sizeof(sig));
}

static const char *
verify(const char *timestamp, const char *signature, const char *body)
{
	int64_t at = UNTOUCHED;
	const char *result = interaction_verify(&key, timestamp, signature,
	    body, strlen(body), &at);

	if ((at == UNTOUCHED) == (result == NULL))
		ok(false, "the time is set exactly when the signature is good");
	return result != NULL ? result : "ok";
}

static void
test_timestamps(void)
{
	static const char *const bad[] = { "", "176722560", "17672256000",
		"176722560a", " 767225600", "+767225600", "-767225600",
		"1767225600 ", "176722560\xd9", "0x67225600" };

	is_str(verify(NULL, good, BODY), "no-timestamp", "a missing timestamp");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_str(verify(bad[i], good, BODY), "no-timestamp", bad[i]);
	is_str(verify("1767225601", good, BODY), "wrong-signature",
	    "another timestamp");
}

static void
test_signature_form(void)
{
	char text[132];

	is_str(verify(TIMESTAMP, NULL, BODY), "no-signature", "missing");
	is_str(verify(TIMESTAMP, "", BODY), "no-signature", "empty");
	memcpy(text, good, sizeof(good));
	text[127] = '\0';
	is_str(verify(TIMESTAMP, text, BODY), "no-signature", "127 digits");
	text[126] = '\0';
	is_str(verify(TIMESTAMP, text, BODY), "no-signature", "126 digits");
	(void)snprintf(text, sizeof(text), "%s00", good);
	is_str(verify(TIMESTAMP, text, BODY), "no-signature", "130 digits");
	memcpy(text, good, sizeof(good));
	text[0] = 'g';
	is_str(verify(TIMESTAMP, text, BODY), "no-signature", "not hex");
	text[0] = ' ';
	is_str(verify(TIMESTAMP, text, BODY), "no-signature", "a space");
}

static void
test_upper_case(void)
{
	char text[sizeof(good)];

	for (size_t i = 0; i < sizeof(good); i++)
		text[i] = (char)(good[i] >= 'a' ? good[i] - 32 : good[i]);
	is_str(verify(TIMESTAMP, text, BODY), "ok", "upper-case hex");
}

/* S + L, with L the order of the group: the same equation, another
 * signature. */
static void
test_malleated(void)
{
	static const unsigned char order[32] = { 0xed, 0xd3, 0xf5, 0x5c, 0x1a,
		0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
		0x14, [31] = 0x10 };
	unsigned char sig[crypto_sign_BYTES];
	char text[sizeof(good)];
	unsigned int carry = 0;

	(void)sodium_hex2bin(sig, sizeof(sig), good, 128, NULL, NULL, NULL);
	for (int i = 0; i < 32; i++) {
		carry += (unsigned int)sig[32 + i] + order[i];
		sig[32 + i] = (unsigned char)(carry & 0xff);
		carry >>= 8;
	}
	(void)sodium_bin2hex(text, sizeof(text), sig, sizeof(sig));
	is_str(verify(TIMESTAMP, text, BODY), "wrong-signature", "malleated");
}

static void
test_what_is_signed(void)
{
	char text[sizeof(good)];

	is_str(verify(TIMESTAMP, good, ""), "no-body", "an empty body");
	is_str(verify(TIMESTAMP, good, BODY "\n"), "wrong-signature",
	    "a newline added");
	sign(text, BODY TIMESTAMP, strlen(BODY TIMESTAMP));
	is_str(verify(TIMESTAMP, text, BODY), "wrong-signature",
	    "body before timestamp");
	sign(text, BODY, strlen(BODY));
	is_str(verify(TIMESTAMP, text, BODY), "wrong-signature", "body alone");
	for (int i = 0; i < 128; i++) {
		memcpy(text, good, sizeof(good));
		text[i] = text[i] == '0' ? '1' : '0';
		if (strcmp(verify(TIMESTAMP, text, BODY), "wrong-signature") !=
		    0)
			ok(false, "one digit changed");
	}
}

static void
test_keys(void)
{
	struct interaction_key other;
	char hex[66];
	int64_t at = 0;

	(void)sodium_bin2hex(hex, 65, key.bytes, sizeof(key.bytes));
	ok(interaction_decode_key(&other, hex), "64 hex digits are a key");
	is_mem(other.bytes, sizeof(other.bytes), key.bytes, sizeof(key.bytes),
	    "and decode to it");
	ok(!interaction_decode_key(&other, ""), "nothing is none");
	hex[63] = '\0';
	ok(!interaction_decode_key(&other, hex), "63 digits are none");
	other = key;
	other.bytes[5] ^= 1;
	is_str(interaction_verify(&other, TIMESTAMP, good, BODY, strlen(BODY),
		   &at),
	    "wrong-signature", "another key");
}

/* RFC 8032, section 7.1, test 1: fixed bytes, made by somebody else's code. */
static void
test_known(void)
{
	struct interaction_key rfc;
	int64_t at = 0;
	static const char body[] = "{\"type\":1}";
	unsigned char seed[32];
	unsigned char public_key[32];

	(void)sodium_hex2bin(seed, sizeof(seed),
	    "9d61b19deffd5a60ba844af492ec2"
	    "cc44449c5697b326919703bac031cae7f60",
	    64, NULL, NULL, NULL);
	(void)crypto_sign_seed_keypair(public_key, secret, seed);
	ok(interaction_decode_key(&rfc,
	       "d75a980182b10ab7d54bfed3c964073a0ee172f3daa"
	       "62325af021a68f707511a"),
	    "the key of RFC 8032");
	is_mem(rfc.bytes, sizeof(rfc.bytes), public_key, sizeof(public_key),
	    "is the one of its seed");
	sign(good, TIMESTAMP "{\"type\":1}", strlen(TIMESTAMP) + strlen(body));
	ok(interaction_verify(&rfc, TIMESTAMP, good, body, strlen(body), &at) ==
		NULL,
	    "it verifies");
	is_int(at, 1767225600, "and tells when");
}

int
main(void)
{
	if (sodium_init() < 0)
		return 1;
	(void)crypto_sign_keypair(key.bytes, secret);
	sign(good, TIMESTAMP BODY, strlen(TIMESTAMP BODY));
	is_str(verify(TIMESTAMP, good, BODY), "ok", "a good signature");
	test_timestamps();
	test_signature_form();
	test_upper_case();
	test_malleated();
	test_what_is_signed();
	test_keys();
	test_known();
	return tap_done();
}
