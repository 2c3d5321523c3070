/* SPDX-License-Identifier: MIT */
#include "sign.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/text.h"

#define BODY_MAX (1 << 20)
#define DISCORD_EPOCH_MS INT64_C(1420070400000)

bool
signer_init(struct signer *signer, const char *seed, int64_t application)
{
	unsigned char bytes[crypto_sign_SEEDBYTES];
	unsigned char public_key[crypto_sign_PUBLICKEYBYTES];

	if (sodium_init() < 0 ||
	    !text_parse_hex(seed, strlen(seed), bytes, sizeof(bytes)))
		return false;
	(void)crypto_sign_seed_keypair(public_key, signer->key, bytes);
	signer->application = application;
	signer->last_id = 0;
	return true;
}

/* An id of now that was not given out before. */
static int64_t
snowflake(struct signer *signer)
{
	int64_t id = (clock_wall_ms() - DISCORD_EPOCH_MS) * (1 << 22);

	signer->last_id = id > signer->last_id ? id : signer->last_id + 1;
	return signer->last_id;
}

static void
add_signed(struct signer *signer, struct buf *out, const struct buf *body)
{
	auto_buf struct buf message = BUF_INIT(BODY_MAX + 16);
	unsigned char signature[crypto_sign_BYTES];
	char hex[2 * crypto_sign_BYTES + 1];
	int64_t now = clock_wall_ms() / 1000;

	buf_addf(&message, "%010" PRId64, now);
	buf_add(&message, body->data, body->len);
	(void)crypto_sign_detached(signature, NULL,
	    (const unsigned char *)message.data, message.len, signer->key);
	(void)sodium_bin2hex(hex, sizeof(hex), signature, sizeof(signature));
	buf_addf(out,
	    "POST /interactions HTTP/1.1\r\n"
	    "Host: 127.0.0.1\r\n"
	    "User-Agent: Discord-Interactions/1.0\r\n"
	    "Content-Type: application/json\r\n"
	    "X-Signature-Ed25519: %s\r\n"
	    "X-Signature-Timestamp: %010" PRId64 "\r\n"
	    "Content-Length: %zu\r\n\r\n",
	    hex, now, body->len);
	buf_add(out, body->data, body->len);
}

void
sign_ping(struct signer *signer, struct buf *out)
{
	auto_buf struct buf body = BUF_INIT(BODY_MAX);

	buf_addf(&body,
	    "{\"app_permissions\":\"2248473465835073\","
	    "\"application_id\":\"%" PRId64 "\",\"entitlements\":[],"
	    "\"id\":\"%" PRId64 "\",\"token\":\"cGluZw\",\"type\":1,"
	    "\"user\":{\"avatar\":null,\"bot\":true,\"discriminator\":\"0\","
	    "\"global_name\":\"Discord\",\"id\":\"643945264868098049\","
	    "\"public_flags\":0,\"system\":true,\"username\":\"discord\"},"
	    "\"version\":1}",
	    signer->application, snowflake(signer));
	add_signed(signer, out, &body);
}

void
sign_command(struct signer *signer, struct buf *out, int64_t user,
    const char *command, const char *code, const char *token)
{
	auto_buf struct buf body = BUF_INIT(BODY_MAX);

	buf_addf(&body,
	    "{\"app_permissions\":\"2248473465835073\","
	    "\"application_id\":\"%" PRId64 "\","
	    "\"attachment_size_limit\":20971520,"
	    "\"authorizing_integration_owners\":{\"0\":\"300000000000000001\"},"
	    "\"channel_id\":\"400000000000000001\",\"context\":0,"
	    "\"data\":{\"id\":\"500000000000000001\",\"name\":\"il\","
	    "\"type\":1,\"options\":[{\"name\":\"%s\",\"type\":1,\"options\":"
	    "[%s%s%s]}]},"
	    "\"entitlements\":[],\"guild_id\":\"300000000000000001\","
	    "\"id\":\"%" PRId64 "\",\"locale\":\"en-US\","
	    "\"member\":{\"permissions\":\"2248473465835073\",\"roles\":[],"
	    "\"user\":{\"id\":\"%" PRId64 "\",\"username\":\"example\","
	    "\"global_name\":\"Example\"}},"
	    "\"token\":\"%s\",\"type\":2,\"version\":1}",
	    signer->application, command,
	    code != NULL ? "{\"name\":\"code\",\"type\":3,\"value\":\"" : "",
	    code != NULL ? code : "", code != NULL ? "\"}" : "",
	    snowflake(signer), user, token);
	add_signed(signer, out, &body);
}
