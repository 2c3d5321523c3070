/* SPDX-License-Identifier: MIT */
/*
 * Requests over HTTP, as a stranger makes them.  The doctor asks nginx's pages
 * and Discord.  `ilctl selftest` asks an interactions endpoint, as Discord does
 * when it is saved.  A correctly signed PING must be answered 200 {"type":1}, a
 * wrongly signed one 401.  Only the holder of the private key can make the
 * first; without one the second, the address and the certificate are checked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/doctor.h"
#include "rest/rest.h"
#include "rest/transfer.h"

#define ANSWER_MS 5000
#define ANSWER_MAX (64 << 10)
/* Discord waits three seconds. */
#define SLOW_US INT64_C(3000000)
/* Far less than IL_TUNE_MAX_SKEW_SECONDS allows, and far more than a clock that
 * is kept has. */
#define SKEW_MAX 10

/* ---- for the doctor: nginx, Discord, and its clock beside ours ---- */

static int
ask_for_doctor(const char *url, struct rest_reply *answer, struct err *err)
{
	auto_buf struct buf body = BUF_INIT(REST_ANSWER_MAX);

	return transfer_once(&(struct transfer_request){ .method = "GET",
				 .url = url,
				 .timeout_ms = ANSWER_MS },
	    answer, &body, err);
}

/* The kernel knows whether a program keeps its clock. */
static void
check_kernel_clock(struct doctor *d)
{
	struct timex timex = { 0 };

	doctor_say(d,
	    adjtimex(&timex) == TIME_ERROR ? FOUND_CLOCK_UNKEPT :
					     FOUND_CLOCK_KEPT,
	    "");
}

/* Signatures carry Discord's time: a clock that differs makes them look
 * stale. */
static void
check_skew(struct doctor *d, int64_t date)
{
	int64_t skew = (int64_t)time(NULL) - date;

	if (date <= 0)
		check_kernel_clock(d);
	else
		doctor_say(d,
		    skew > SKEW_MAX || skew < -SKEW_MAX ? FOUND_CLOCK_SKEW :
							  FOUND_CLOCK_GOOD,
		    doctor_number(skew).text, doctor_number(SKEW_MAX).text);
}

/* nginx is asked on loopback, where no proxy stands between. */
void
doctor_http(struct doctor *d)
{
	auto_free char *url = xprintf("http://127.0.0.1:%" PRId64 "/health",
	    where_port(d->config));
	struct rest_reply answer;
	struct err err = { 0 };

	if (ask_for_doctor(url, &answer, &err) != 0)
		doctor_say(d, FOUND_HTTP_NONE, url, err.text);
	else
		doctor_say(d,
		    answer.status != 200 ? FOUND_HTTP_BAD : FOUND_HTTP_GOOD,
		    url, doctor_number(answer.status).text);
}

/* Can we reach it? Its answer also tells the time. */
void
doctor_discord(struct doctor *d)
{
	/* This needs no token; any answer will do. */
	auto_free char *url = xprintf("%s/gateway",
	    d->config->discord_api_base);
	struct rest_reply answer;
	struct err err = { 0 };

	if (*d->config->discord_public_key == '\0') {
		check_kernel_clock(d);
		return;
	}
	doctor_say(d,
	    ask_for_doctor(url, &answer, &err) != 0 ? FOUND_DISCORD_BAD :
						      FOUND_DISCORD_GOOD,
	    d->config->discord_api_base, err.text);
	check_skew(d, answer.date);
}

/* ---- selftest ---- */

static const char ping[] = "{\"application_id\":\"1\",\"id\":\"1\","
			   "\"token\":\"selftest\",\"type\":1,\"version\":1}";

struct selftest {
	const char *url;
	bool can_sign;
	unsigned char secret[crypto_sign_SECRETKEYBYTES];
	struct doctor doctor; /* counts what failed */
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
	const char *hex = table_json_text(root, "seed");

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

/* Signature and timestamp headers for the PING, heap; a wrong one is signed
 * with a key that nobody has. */
static void
sign(const struct selftest *t, bool wrong, char **signed_by, char **stamp)
{
	unsigned char signature[crypto_sign_BYTES];
	char hex[2 * crypto_sign_BYTES + 1];
	long long now = (long long)time(NULL);
	auto_free char *message = xprintf("%lld%s", now, ping);

	if (wrong)
		randombytes_buf(signature, sizeof(signature));
	else
		(void)crypto_sign_detached(signature, NULL,
		    (const unsigned char *)message, strlen(message), t->secret);
	(void)sodium_bin2hex(hex, sizeof(hex), signature, sizeof(signature));
	*signed_by = xprintf("X-Signature-Ed25519: %s", hex);
	*stamp = xprintf("X-Signature-Timestamp: %lld", now);
}

/* A line for each thing that was tested. */
static void
selftest_report(struct selftest *t, bool good, const char *what,
    const char *why)
{
	doctor_say(&t->doctor, good ? FOUND_TEST_GOOD : FOUND_TEST_BAD, what,
	    why);
}

static bool
test_status(struct selftest *t, int status, int want, const char *what)
{
	auto_free char *why = xprintf("status %d instead of %d%s", status, want,
	    status == 404 || status == 405 ?
		": is that the whole address, with /interactions?" :
		"");

	selftest_report(t, status == want, what, why);
	return status == want;
}

static void
test_good(struct selftest *t, const struct rest_reply *answer,
    const struct buf *body, int64_t took_us)
{
	json_auto_t *root = json_loadb(buf_str(body), body->len, 0, NULL);

	if (!test_status(t, answer->status, 200, "a signed PING is accepted"))
		return;
	selftest_report(t,
	    json_integer_value(json_object_get(root, "type")) == 1,
	    "it is answered {\"type\":1}", "the body is something else");
	selftest_report(t, answer->is_json, "as application/json",
	    "the Content-Type is something else");
	selftest_report(t, took_us < SLOW_US, "within three seconds",
	    "it took longer");
}

/* One PING, as Discord sends it.  False: nobody answers there. */
static bool
test_one(struct selftest *t, bool wrong)
{
	auto_buf struct buf body = BUF_INIT(ANSWER_MAX);
	auto_free char *signed_by = NULL;
	auto_free char *stamp = NULL;
	struct transfer_request request = { .method = "POST",
		.url = t->url,
		.agent = "Discord-Interactions/1.0 (+https://discord.com)",
		.body = ping,
		.timeout_ms = ANSWER_MS };
	struct rest_reply answer;
	int64_t since_us = clock_monotonic_us();
	struct err err;
	int result;

	sign(t, wrong, &signed_by, &stamp);
	request.headers[0] = signed_by;
	request.headers[1] = stamp;
	result = transfer_once(&request, &answer, &body, &err);
	if (result != 0)
		selftest_report(t, false, t->url, err.text);
	else if (wrong)
		test_status(t, answer.status, 401,
		    "a wrongly signed one is refused");
	else
		test_good(t, &answer, &body, clock_monotonic_us() - since_us);
	return result == 0;
}

int
ctl_selftest(struct ctl *ctl, struct err *err)
{
	struct selftest t = { 0 };
	const char *key_file = ctl_cut(ctl, "--key-file", 2);

	t.url = ctl->argv[1];
	if (ctl->argc != 2 ||
	    (strncmp(t.url, "https://", 8) != 0 &&
		strncmp(t.url, "http://", 7) != 0))
		return CTL_MISUSED;
	if (sodium_init() < 0)
		return err_set(err, ERR_SYSTEM, "a library does not start");
	if (key_file != NULL && read_key(&t, key_file, err) != 0)
		return -1;
	if (!t.can_sign)
		doctor_say(&t.doctor, FOUND_TEST_NO_KEY, "");
	if (strncmp(t.url, "https://", 8) != 0)
		doctor_say(&t.doctor, FOUND_TEST_NO_TLS, "");
	/* The wrongly signed PING needs no key. */
	if (test_one(&t, true) && t.can_sign)
		(void)test_one(&t, false);
	sodium_memzero(t.secret, sizeof(t.secret));
	return t.doctor.failed == 0 ? CTL_OK : CTL_FAILED;
}
