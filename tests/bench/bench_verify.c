/* SPDX-License-Identifier: MIT */
/*
 * The CPU time of il-fcgi's whole check of a signature beside that of
 * libsodium's verification alone, of the same bytes, in turns.
 *
 *	bench_verify ROUNDS
 *
 * Prints one JSON object with the medians of the rounds, in microseconds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "base/text.h"
#include "discord/interaction.h"
#include "samples.h"
#include "sign.h"

#define IN_ROUND 50

/* Parts of a signed request. */
struct signed_body {
	char timestamp[16];
	char signature[2 * crypto_sign_BYTES + 1];
	const char *body;
	size_t len;
};

static double
cpu_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void
copy_field(char *out, size_t size, const char *request, const char *name)
{
	const char *value = strstr(request, name);

	if (value == NULL)
		exit(1);
	value += strlen(name);
	(void)snprintf(out, size, "%.*s", (int)strcspn(value, "\r"), value);
}

static void
take_apart(struct signed_body *s, const struct buf *request)
{
	const char *text = buf_str(request);

	copy_field(s->timestamp, sizeof(s->timestamp), text,
	    "X-Signature-Timestamp: ");
	copy_field(s->signature, sizeof(s->signature), text,
	    "X-Signature-Ed25519: ");
	s->body = strstr(text, "\r\n\r\n") + 4;
	s->len = request->len - (size_t)(s->body - text);
}

static void
check_ours(const struct signed_body *s, const struct interaction_key *key)
{
	int64_t at;

	for (int i = 0; i < IN_ROUND; i++)
		if (interaction_verify(key, s->timestamp, s->signature, s->body,
			s->len, &at) != NULL)
			exit(1);
}

static void
check_theirs(const unsigned char *signature, const struct buf *message,
    const struct interaction_key *key)
{
	for (int i = 0; i < IN_ROUND; i++)
		if (crypto_sign_verify_detached(signature,
			(const unsigned char *)message->data, message->len,
			key->bytes) != 0)
			exit(1);
}

int
main(int argc, char **argv)
{
	auto_buf struct buf request = BUF_INIT(1 << 16);
	auto_buf struct buf message = BUF_INIT(1 << 16);
	struct samples ours = { 0 };
	struct samples theirs = { 0 };
	unsigned char signature[crypto_sign_BYTES];
	struct signed_body body;
	struct interaction_key key;
	struct signer signer;
	int64_t rounds;

	if (argc != 2 || !text_parse_int(argv[1], 1, 1000000, &rounds) ||
	    !signer_init(&signer,
		"9d61b19deffd5a60ba844af492ec2cc4"
		"4449c5697b326919703bac031cae7f60",
		1))
		return 64;
	memcpy(key.bytes, signer.key + 32, sizeof(key.bytes));
	sign_command(&signer, &request, 1, "py", "print(1)", "token");
	take_apart(&body, &request);
	buf_adds(&message, body.timestamp);
	buf_add(&message, body.body, body.len);
	(void)text_parse_hex(body.signature, strlen(body.signature), signature,
	    sizeof(signature));
	for (int64_t i = 0; i < rounds; i++) {
		double start = cpu_us();
		double middle;

		check_ours(&body, &key);
		middle = cpu_us();
		check_theirs(signature, &message, &key);
		samples_add(&ours, (middle - start) / IN_ROUND);
		samples_add(&theirs, (cpu_us() - middle) / IN_ROUND);
	}
	printf("{\"bytes\":%zu,\"check_us\":%.3f,\"verify_us\":%.3f}\n",
	    message.len, samples_at(&ours, 0.5), samples_at(&theirs, 0.5));
	samples_release(&ours);
	samples_release(&theirs);
	return 0;
}
