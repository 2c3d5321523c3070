/* SPDX-License-Identifier: MIT */
/* Every row of the retry policy, without a network and without waiting. */
#include "rest/limiter.h"
#include "rest/transfer.h"
#include "tap.h"

#define FAR 1000000000

static struct retry
final(void)
{
	return (struct retry){ .patience = REST_FINAL, .deadline_ms = FAR };
}

static struct retry_verdict
once(struct retry retry, int status, int64_t code)
{
	struct rest_reply answer = { .status = status,
		.json = true,
		.code = code,
		.retry_after_ms = -1 };

	return retry_decide(&retry, &answer, 1000, 0);
}

static void
test_ends(void)
{
	struct retry progress = final();

	progress.patience = REST_PROGRESS;
	is_int(once(final(), 200, 0).outcome, REST_DONE, "200 is done");
	is_int(once(final(), 204, 0).outcome, REST_DONE, "204 is done");
	is_int(once(final(), 401, 50027).outcome, REST_GONE, "dead token");
	progress.patience = REST_ONCE;
	is_int(once(progress, 429, 0).outcome, REST_DROPPED,
	    "one try is dropped, too");
	is_int(once(progress, 500, 0).outcome, REST_LATER, "and no more");
	is_int(once(final(), 400, 50035).outcome, REST_REFUSED, "bad body");
	is_int(once(final(), 403, 50013).outcome, REST_REFUSED, "forbidden");
	is_int(once(final(), 413, 40005).outcome, REST_REFUSED, "too large");
	is_int(once(final(), 302, 0).outcome, REST_REFUSED, "no redirects");
	is_int(once(final(), 404, 10062).outcome, REST_GONE,
	    "unknown interaction");
	is_int(once(progress, 429, 0).outcome, REST_DROPPED,
	    "progress is dropped when limited");
	is_int(once(progress, 404, 10015).outcome, REST_DROPPED,
	    "progress does not wait for a webhook");
	is_int(once(progress, 500, 0).outcome, REST_LATER,
	    "progress is tried once");
}

static void
test_limited(void)
{
	struct retry retry = final();
	struct rest_reply answer = {
		.status = 429, .json = true, .retry_after_ms = 700
	};
	struct retry_verdict v = retry_decide(&retry, &answer, 0, 0);
	int tries = 1;

	ok(v.again && v.wait_ms >= 700 && v.wait_ms < 900,
	    "waits as long as Discord says");
	while (retry_decide(&retry, &answer, 0, 0).again)
		tries++;
	is_int(tries, RETRY_LIMITED, "and not for ever");

	retry = final();
	answer.json = false;
	answer.retry_after_ms = -1;
	v = retry_decide(&retry, &answer, 0, 0);
	ok(v.again && v.wait_ms >= 60000, "Cloudflare: at least a minute");

	retry = final();
	retry.deadline_ms = 500;
	answer.retry_after_ms = 700;
	v = retry_decide(&retry, &answer, 0, 0);
	ok(!v.again && v.outcome == REST_LATER, "not past the deadline");
}

/* Not this call is refused, but all that we send. */
static void
test_blocked(void)
{
	static const struct {
		const char *name;
		struct rest_reply answer;
		bool block; /* told to all */
	} rows[] = {
		{ "a 403 that is not Discord's",
		    { .status = 403, .retry_after_ms = -1 }, true },
		{ "Cloudflare's code",
		    { .status = 403,
			.json = true,
			.code = 40333,
			.retry_after_ms = -1 },
		    true },
		{ "a 401 on a good token",
		    { .status = 401, .json = true, .retry_after_ms = -1 },
		    false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rest_reply answer = rows[i].answer;
		struct retry retry = final();
		struct retry_verdict v = retry_decide(&retry, &answer, 0, 0);
		int tries = 1;

		note("%s", rows[i].name);
		ok(retry_is_block(&answer) == rows[i].block, "who is told");
		ok(retry_is_invalid(&answer), "counted");
		ok(v.outcome == REST_LATER && v.wait_ms >= 60000,
		    "kept for a minute");
		answer.retry_after_ms = 2500;
		v = retry_decide(&retry, &answer, 0, 0);
		ok(v.again && v.wait_ms > 2500 && v.wait_ms < 2700,
		    "or as long as is said");
		answer.retry_after_ms = 0;
		ok(retry_decide(&retry, &answer, 0, 0).wait_ms >= 1000,
		    "never again at once");
		while (retry_decide(&retry, &answer, 0, 0).again)
			tries++;
		ok(tries < RETRY_LIMITED, "and not for ever");
		retry.patience = REST_ONCE;
		retry.limited = 0;
		is_int(retry_decide(&retry, &answer, 0, 0).outcome,
		    REST_DROPPED, "no second try where there is one");
	}
}

/* Answers that concern this call alone, or that are no fault of ours. */
static void
test_not_blocked(void)
{
	struct retry bot = final();
	struct rest_reply answer = { .status = 429, .json = true };

	bot.bot = true;
	is_int(once(bot, 401, 0).outcome, REST_REFUSED, "wrong bot token");
	is_int(once(bot, 403, 20012).outcome, REST_REFUSED, "another's");
	ok(!retry_is_block(&answer), "a limit of one route");
	answer.shared = true;
	ok(!retry_is_invalid(&answer), "one that others have used up");
	answer.global = true;
	ok(retry_is_block(&answer), "one for all routes");
	answer = (struct rest_reply){ .status = 403, .json = true };
	ok(!retry_is_block(&answer) && retry_is_invalid(&answer),
	    "a refusal of Discord's own");
	answer.status = 404;
	ok(!retry_is_invalid(&answer), "nothing there");
}

static int64_t
missing_for(int64_t code)
{
	struct retry retry = final();
	struct rest_reply answer = {
		.status = 404, .json = true, .code = code
	};
	int64_t now_ms = 5000;

	for (;;) {
		struct retry_verdict v = retry_decide(&retry, &answer, now_ms,
		    0);

		if (!v.again)
			return v.outcome == REST_GONE ? now_ms - 5000 : -1;
		now_ms += v.wait_ms;
	}
}

static void
test_missing(void)
{
	struct retry retry = final();
	struct rest_reply answer = {
		.status = 404, .json = true, .code = 10015
	};

	struct retry progress = { .patience = REST_PROGRESS,
		.deadline_ms = INT64_MAX };

	is_int(retry_decide(&retry, &answer, 0, 0).wait_ms, 100,
	    "404: first again after 100 ms");
	is_int(retry_decide(&retry, &answer, 50, 0).wait_ms, 400,
	    "then after 400 ms");
	for (int64_t now_ms = 0; now_ms < 8000; now_ms += 2000)
		is_int(retry_decide(&progress, &answer, now_ms, 0).outcome,
		    REST_DROPPED, "progress is dropped");
	is_int(retry_decide(&progress, &answer, 8000, 0).outcome, REST_GONE,
	    "until it is gone for that, too");
	ok(missing_for(10015) > 8000 && missing_for(10015) <= 10000,
	    "unknown webhook: about 10 s");
	ok(missing_for(10008) > 1000 && missing_for(10008) <= 3000,
	    "deleted message: 3 s");
}

static void
test_failed(void)
{
	static const int64_t want[] = { 1000, 2000, 4000, 8000 };
	struct retry retry = final();
	struct rest_reply answer = { .status = 503 };
	struct retry_verdict v;

	for (int i = 0; i < 4; i++) {
		v = retry_decide(&retry, &answer, 0, 0);
		ok(v.again, "503: again");
		is_int(v.wait_ms, want[i], "with a growing pause");
	}
	v = retry_decide(&retry, &answer, 0, 0);
	ok(!v.again && v.outcome == REST_LATER, "and then later");

	retry = final();
	v = retry_decide(&retry, &answer, 0, UINT32_MAX);
	ok(v.wait_ms >= 1000 && v.wait_ms < 1250, "jitter stays small");
}

static int64_t
seconds(const char *text)
{
	return transfer_parse_seconds(text);
}

static void
test_seconds(void)
{
	is_int(seconds("0.25"), 250, "a header's float");
	is_int(seconds("65"), 65000, "whole seconds");
	is_int(seconds("99999999"), 3600000, "an hour at most");
	is_int(seconds("-1"), -1, "no sign");
	is_int(seconds("nan"), -1, "not a number");
	is_int(seconds("1e9"), -1, "no exponent");
	is_int(seconds("1.2.3"), -1, "two points");
	is_int(seconds(""), -1, "nothing");
}

static void
test_download(void)
{
	const char *api = "https://discord.com/api/v10";
	const char *here = "http://127.0.0.1:4000/api/v10";

	ok(transfer_may_download("https://cdn.discordapp.com/a/b?ex=1", api),
	    "the CDN");
	ok(transfer_may_download("https://media.discordapp.net/a", api),
	    "the media proxy");
	ok(transfer_may_download("http://127.0.0.1:4000/attachments/1/2/x",
	       here),
	    "the stand-in's origin");
	ok(!transfer_may_download("http://cdn.discordapp.com/a", api),
	    "not without TLS");
	ok(!transfer_may_download("https://cdn.discordapp.com:8443/a", api),
	    "no other port");
	ok(!transfer_may_download("https://u:p@cdn.discordapp.com/a", api),
	    "no password");
	ok(!transfer_may_download("https://cdn.discordapp.com.evil.example/a",
	       api),
	    "no longer name");
	ok(!transfer_may_download("https://discord.com/a", api), "not the API");
	ok(!transfer_may_download("http://127.0.0.1:4001/a", here),
	    "not another port here");
	ok(!transfer_may_download("http://localhost:4000/a", here),
	    "not another name");
	ok(!transfer_may_download("http://127.0.0.1:4000/a", api),
	    "nothing local otherwise");
	ok(!transfer_may_download("file:///etc/passwd", here), "no files");
	ok(!transfer_may_download("", here), "not nothing");
	ok(!transfer_may_download("https://cdn.discordapp.com@evil.example/",
	       api),
	    "a name as user");
}

static void
test_local(void)
{
	ok(transfer_is_local("http://127.0.0.1:4000/api/v10"), "with a port");
	ok(transfer_is_local("http://127.0.0.1"), "without one");
	ok(!transfer_is_local("http://127.0.0.1.example/"), "a longer name");
	ok(!transfer_is_local("http://127.0.0.1@example/"), "a user");
	ok(!transfer_is_local("https://discord.com/api/v10"), "Discord");
	ok(!transfer_is_local(""), "nothing");
}

int
main(void)
{
	test_ends();
	test_limited();
	test_blocked();
	test_not_blocked();
	test_missing();
	test_failed();
	test_seconds();
	test_download();
	test_local();
	return tap_done();
}
