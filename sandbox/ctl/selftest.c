/* SPDX-License-Identifier: MIT */
/*
 * What Discord does when an interactions endpoint is saved: a correctly signed
 * PING, which must be answered 200 {"type":1}, and a wrongly signed one, which
 * must be answered 401.  Only the holder of the private key can make the first;
 * without one the second, the address and the certificate are checked.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <jansson.h>
#include <sodium.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/text.h"
#include "ctl.h"
#include "http.h"

#define ANSWER_MAX (64 << 10)
/* Discord waits three seconds. */
#define SLOW_US INT64_C(3000000)

static const char ping[] = "{\"application_id\":\"1\",\"id\":\"1\","
			   "\"token\":\"selftest\",\"type\":1,\"version\":1}";

struct selftest {
	const char *url;
	bool can_sign;
	unsigned char secret[crypto_sign_SECRETKEYBYTES];
	int failed;
};

/* Seed of a key file as the stand-in writes it: {"seed": "<64 hex digits>"}. */
static int
read_key(struct selftest *t, const char *path, struct err *err)
{
	unsigned char seed[crypto_sign_SEEDBYTES];
	unsigned char public[crypto_sign_PUBLICKEYBYTES];
	json_error_t error;
	json_auto_t *root = json_load_file(path, JSON_REJECT_DUPLICATES,
	    &error);
	const char *hex = json_string_value(json_object_get(root, "seed"));

	if (root == NULL)
		return err_set(err, ERR_CONFIG, "%s: %s", path, error.text);
	if (hex == NULL ||
	    !text_parse_hex(hex, strlen(hex), seed, sizeof(seed)))
		return err_set(err, ERR_CONFIG,
		    "%s: no \"seed\" of 64 hex digits in it", path);
	(void)crypto_sign_seed_keypair(public, t->secret, seed);
	sodium_memzero(seed, sizeof(seed));
	t->can_sign = true;
	return 0;
}

/* Signature and timestamp headers for the PING; a wrong one is signed with a
 * key that nobody has. */
static struct curl_slist *
sign(const struct selftest *t, bool wrong)
{
	unsigned char signature[crypto_sign_BYTES];
	char hex[2 * crypto_sign_BYTES + 1];
	struct curl_slist *headers;
	auto_free char *stamp = xprintf("X-Signature-Timestamp: %lld",
	    (long long)time(NULL));
	auto_free char *message = xprintf("%s%s", strrchr(stamp, ' ') + 1,
	    ping);
	auto_free char *line = NULL;

	if (wrong)
		randombytes_buf(signature, sizeof(signature));
	else
		(void)crypto_sign_detached(signature, NULL,
		    (const unsigned char *)message, strlen(message), t->secret);
	(void)sodium_bin2hex(hex, sizeof(hex), signature, sizeof(signature));
	line = xprintf("X-Signature-Ed25519: %s", hex);
	headers = curl_slist_append(curl_slist_append(NULL, stamp), line);
	return curl_slist_append(headers, "Content-Type: application/json");
}

/* A line for each thing that was tested. */
static void
verdict(struct selftest *t, bool good, const char *what, const char *why)
{
	printf("%s  %s%s%s\n", good ? "ok  " : "FAIL", what, good ? "" : ": ",
	    good ? "" : why);
	if (!good)
		t->failed++;
}

static void
test_good(struct selftest *t, const struct http *http)
{
	json_auto_t *root = json_loadb(buf_str(http->body), http->body->len, 0,
	    NULL);
	auto_free char *why = xprintf("status %ld instead of 200",
	    http->status);

	verdict(t, http->status == 200, "a signed PING is accepted", why);
	if (http->status != 200)
		return;
	verdict(t, json_integer_value(json_object_get(root, "type")) == 1,
	    "it is answered {\"type\":1}", "the body is something else");
	verdict(t, http->json, "as application/json",
	    "the Content-Type is something else");
	verdict(t, http->took_us < SLOW_US, "within three seconds",
	    "it took longer");
}

static void
test_wrong(struct selftest *t, long status)
{
	auto_free char *why = xprintf("status %ld instead of 401%s", status,
	    status == 404 || status == 405 ?
		": is that the whole address, with /interactions?" :
		"");

	verdict(t, status == 401, "a wrongly signed one is refused", why);
}

/* One PING, as Discord sends it.  False: nobody answers there. */
static bool
test_one(struct selftest *t, bool wrong)
{
	auto_buf struct buf body = BUF_INIT(ANSWER_MAX);
	struct http http = { .url = t->url,
		.agent = "Discord-Interactions/1.0 (+https://discord.com)",
		.post = ping,
		.headers = sign(t, wrong),
		.body = &body };
	CURLcode result = http_ask(&http);

	curl_slist_free_all(http.headers);
	if (result != CURLE_OK)
		verdict(t, false, t->url, curl_easy_strerror(result));
	else if (wrong)
		test_wrong(t, http.status);
	else
		test_good(t, &http);
	return result == CURLE_OK;
}

/* The wrongly signed PING comes first: it needs no key. */
static int
run(struct selftest *t)
{
	if (!t->can_sign)
		printf("note  no --key-file: only Discord can send a correctly "
		       "signed PING; it does so\n"
		       "      when the address is saved in its portal\n");
	if (strncmp(t->url, "https://", 8) != 0)
		printf("note  Discord takes nothing but https:// addresses\n");
	if (test_one(t, true) && t->can_sign)
		(void)test_one(t, false);
	return t->failed == 0 ? CTL_OK : CTL_FAILED;
}

int
ctl_selftest(struct ctl *ctl)
{
	struct selftest t = { 0 };
	const char *key_file = NULL;
	struct err err = { 0 };
	int code;

	/* The option may stand before or after the address. */
	for (int i = 1; i < ctl->argc; i++) {
		if (strcmp(ctl->argv[i], "--key-file") == 0 &&
		    i + 1 < ctl->argc)
			key_file = ctl->argv[++i];
		else if (ctl->argv[i][0] == '-' || t.url != NULL)
			return CTL_MISUSED;
		else
			t.url = ctl->argv[i];
	}
	if (t.url == NULL ||
	    (strncmp(t.url, "https://", 8) != 0 &&
		strncmp(t.url, "http://", 7) != 0))
		return CTL_MISUSED;
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		(void)err_set(&err, ERR_SYSTEM, "a library does not start");
	else if (key_file != NULL)
		(void)read_key(&t, key_file, &err);
	if (err.code != ERR_NONE)
		return ctl_fail(ctl->argv[0], &err);
	code = run(&t);
	sodium_memzero(t.secret, sizeof(t.secret));
	curl_global_cleanup();
	return code;
}
