/* SPDX-License-Identifier: MIT */
#include "rest/retry.h"

#define CODE_UNKNOWN_MESSAGE 10008
#define CODE_UNKNOWN_INTERACTION 10062
#define CODE_CLOUDFLARE 40333
#define CODE_TOKEN_DEAD 50027

/* Without a number from Discord: its own limits pass within seconds,
 * Cloudflare's last for minutes. */
#define LIMITED_DEFAULT_MS 1000
#define CLOUDFLARE_DEFAULT_MS 60000
/* A block is never tried again at once, whatever it says. */
#define BLOCK_LEAST_MS 1000
/* Never a moment too early: that counts as one more violation. */
#define MARGIN_MS 10
/* Six tries in ten seconds: Discord restricts who sends more. */
#define MISSING_FIRST_MS 100
#define MISSING_MOST_MS 3500

/* The end of the tries. */
static struct retry_verdict
verdict(enum rest_outcome outcome)
{
	return (struct retry_verdict){ .outcome = outcome };
}

/* Another try after a wait, if it may still begin then. */
static struct retry_verdict
again(const struct retry *retry, int64_t now_ms, int64_t wait_ms)
{
	return (struct retry_verdict){
		.again = now_ms + wait_ms <= retry->deadline_ms,
		.wait_ms = wait_ms,
		.outcome = REST_LATER,
	};
}

bool
retry_is_block(const struct rest_reply *answer)
{
	if (answer->status == 403)
		return !answer->json || answer->code == CODE_CLOUDFLARE;
	return answer->status == 429 && (answer->global || !answer->json);
}

bool
retry_is_invalid(const struct rest_reply *answer)
{
	return answer->status == 401 || answer->status == 403 ||
	    (answer->status == 429 && !answer->shared);
}

int64_t
retry_pause_ms(const struct rest_reply *answer)
{
	bool limit = answer->status == 429 && answer->json;
	int64_t pause_ms = answer->retry_after_ms;

	if (pause_ms < 0)
		pause_ms = limit ? LIMITED_DEFAULT_MS : CLOUDFLARE_DEFAULT_MS;
	if (!limit && pause_ms < BLOCK_LEAST_MS)
		pause_ms = BLOCK_LEAST_MS;
	return pause_ms + MARGIN_MS;
}

/* Does Discord ask for a wait, or Cloudflare in its place? */
static bool
is_limited(const struct retry *retry, const struct rest_reply *answer)
{
	return answer->status == 429 || retry_is_block(answer) ||
	    (answer->status == 401 && !retry->bot);
}

/* As long as Discord says. */
static struct retry_verdict
decide_limited(struct retry *retry, const struct rest_reply *answer,
    int64_t now_ms, uint32_t jitter)
{
	if (++retry->limited > RETRY_LIMITED)
		return verdict(REST_LATER);
	return again(retry, now_ms, retry_pause_ms(answer) + jitter % 90);
}

/* 404: "not yet", or "not any more". */
static struct retry_verdict
decide_missing(struct retry *retry, const struct rest_reply *answer,
    int64_t now_ms)
{
	int64_t limit_ms = answer->code == CODE_UNKNOWN_MESSAGE ?
	    RETRY_DELETED_MS :
	    RETRY_MISSING_MS;
	int64_t wait_ms = MISSING_MOST_MS;

	if (retry->missing++ == 0)
		retry->missing_since_ms = now_ms;
	if (retry->missing <= 3)
		wait_ms = (int64_t)MISSING_FIRST_MS
		    << (2 * (retry->missing - 1));
	if (now_ms - retry->missing_since_ms + wait_ms > limit_ms)
		return verdict(REST_GONE);
	if (retry->patience != REST_FINAL)
		return verdict(REST_DROPPED);
	return again(retry, now_ms, wait_ms);
}

/* No answer, or one that blames the server. */
static struct retry_verdict
decide_failed(struct retry *retry, int64_t now_ms, uint32_t jitter)
{
	int64_t wait_ms = (int64_t)1000 << retry->failed;

	if (retry->patience != REST_FINAL || retry->failed++ >= RETRY_FAILED)
		return verdict(REST_LATER);
	return again(retry, now_ms, wait_ms + jitter % (wait_ms / 4));
}

struct retry_verdict
retry_decide(struct retry *retry, const struct rest_reply *answer,
    int64_t now_ms, uint32_t jitter)
{
	bool once = retry->patience != REST_FINAL;
	int status = answer->status;
	bool limited = is_limited(retry, answer);

	if (status >= 200 && status < 300)
		return verdict(REST_DONE);
	if ((status == 401 && answer->code == CODE_TOKEN_DEAD) ||
	    (status == 404 && answer->code == CODE_UNKNOWN_INTERACTION))
		return verdict(REST_GONE);
	if (once && limited)
		return verdict(REST_DROPPED);
	if (limited)
		return decide_limited(retry, answer, now_ms, jitter);
	if (status == 404)
		return decide_missing(retry, answer, now_ms);
	if (status > 0 && status != 408 && status < 500)
		return verdict(REST_REFUSED);
	return decide_failed(retry, now_ms, jitter);
}
