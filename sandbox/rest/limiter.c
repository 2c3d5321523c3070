/* SPDX-License-Identifier: MIT */
#include "rest/limiter.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/file.h"

#define CODE_UNKNOWN_MESSAGE 10008
#define CODE_UNKNOWN_INTERACTION 10062
#define CODE_CLOUDFLARE 40333
#define CODE_TOKEN_DEAD 50027

/* Without a number from Discord: its own limits pass within seconds,
 * Cloudflare's last for minutes. */
#define LIMITED_DEFAULT_MS 1000
#define CLOUDFLARE_DEFAULT_MS 60000
/* Least wait after a block, whatever the answer says. */
#define BLOCK_LEAST_MS 1000
/* A request that comes too early counts as one more violation. */
#define MARGIN_MS 10
/* Six tries in ten seconds: Discord restricts clients that send more. */
#define MISSING_FIRST_MS 100
#define MISSING_MOST_MS 3500

/* Ten whole minutes and the current one, so that never too few are counted. */
#define MINUTES 11
#define MINUTE_MS 60000
/* A bucket is its minute (since 1970), and how many there were in it. */
#define COUNT_BITS 24
#define COUNT_MOST ((UINT64_C(1) << COUNT_BITS) - 1)

/* The file.  All zero: nothing has happened. */
struct limiter {
	_Atomic int64_t blocked_until_ms; /* 0: there is no block */
	_Atomic uint64_t buckets[MINUTES];
};

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 &&
	sizeof(struct limiter) == 8 + 8 * MINUTES,
    "other processes must see whole numbers, in the same places");

struct limiter *
limiter_open(const char *path, struct err *err)
{
	return shared_file_open(path, sizeof(struct limiter), err);
}

void
limiter_close(struct limiter *limiter)
{
	shared_file_close(limiter, sizeof(*limiter));
}

/* ---- the block ---- */

/* Remaining time of the block, 0: none.  A number beyond the longest block is
 * damage, or the clock was set. */
static int64_t
block_left(int64_t until_ms, int64_t now_ms)
{
	if (until_ms <= now_ms || until_ms - LIMITER_BLOCK_MOST_MS > now_ms)
		return 0;
	return until_ms - now_ms;
}

bool
limiter_block(struct limiter *limiter, int64_t now_ms, int64_t for_ms)
{
	_Atomic int64_t *until = &limiter->blocked_until_ms;
	int64_t before = atomic_load(until);
	int64_t left;

	if (for_ms > LIMITER_BLOCK_MOST_MS)
		for_ms = LIMITER_BLOCK_MOST_MS;
	do {
		left = block_left(before, now_ms);
		if (for_ms <= left)
			return false;
	} while (!atomic_compare_exchange_weak(until, &before,
	    now_ms + for_ms));
	return left == 0;
}

bool
limiter_is_over(struct limiter *limiter, int64_t now_ms)
{
	_Atomic int64_t *until = &limiter->blocked_until_ms;
	int64_t before = atomic_load(until);

	return before != 0 && block_left(before, now_ms) == 0 &&
	    atomic_compare_exchange_strong(until, &before, 0);
}

/* ---- the count ---- */

struct limiter_state
limiter_read_state(const struct limiter *limiter, int64_t now_ms)
{
	struct limiter_state state = {
		.blocked_ms =
		    block_left(atomic_load(&limiter->blocked_until_ms), now_ms),
	};
	int64_t minute = now_ms / MINUTE_MS;

	for (size_t i = 0; i < MINUTES; i++) {
		uint64_t bucket = atomic_load(&limiter->buckets[i]);
		int64_t of = (int64_t)(bucket >> COUNT_BITS);

		/* A bucket whose minute is over does not count. */
		if (of > minute - MINUTES && of <= minute)
			state.invalid += (int64_t)(bucket & COUNT_MOST);
	}
	return state;
}

bool
limiter_count(struct limiter *limiter, int64_t now_ms)
{
	int64_t minute = now_ms / MINUTE_MS;
	_Atomic uint64_t *bucket = &limiter->buckets[minute % MINUTES];
	uint64_t before = atomic_load(bucket);
	uint64_t after;

	/* a bucket of another minute begins anew */
	do {
		after = (uint64_t)minute << COUNT_BITS;
		if (before >> COUNT_BITS == (uint64_t)minute)
			after = before;
		if ((after & COUNT_MOST) < COUNT_MOST)
			after++;
	} while (!atomic_compare_exchange_weak(bucket, &before, after));
	return limiter_read_state(limiter, now_ms).invalid > LIMITER_HALT &&
	    limiter_block(limiter, now_ms, LIMITER_HALT_MS);
}

/* ---- for an operator ---- */

int
limiter_read_file(const char *path, int64_t now_ms, struct limiter_state *state,
    struct err *err)
{
	const struct limiter *limiter = shared_file_read(path, sizeof(*limiter),
	    err);

	if (limiter == NULL)
		return -1;
	*state = limiter_read_state(limiter, now_ms);
	shared_file_close(limiter, sizeof(*limiter));
	return 0;
}

/* ---- retries ---- */

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

/* A 404 means "not yet", or "not any more". */
static void
decide_missing(struct retry *retry, const struct rest_reply *answer,
    int64_t now_ms, struct retry_verdict *verdict)
{
	int64_t limit_ms = answer->code == CODE_UNKNOWN_MESSAGE ?
	    RETRY_DELETED_MS :
	    RETRY_MISSING_MS;

	if (retry->missing++ == 0)
		retry->missing_since_ms = now_ms;
	verdict->wait_ms = retry->missing > 3 ?
	    MISSING_MOST_MS :
	    MISSING_FIRST_MS << (2 * (retry->missing - 1));
	if (now_ms - retry->missing_since_ms + verdict->wait_ms > limit_ms)
		verdict->outcome = REST_GONE;
	else if (retry->patience != REST_FINAL)
		verdict->outcome = REST_DROPPED;
	else
		verdict->again = true;
}

struct retry_verdict
retry_decide(struct retry *retry, const struct rest_reply *answer,
    int64_t now_ms, uint32_t jitter)
{
	struct retry_verdict verdict = { .outcome = REST_LATER };
	bool once = retry->patience != REST_FINAL;
	int status = answer->status;
	/* Discord asks for a wait, or Cloudflare in its place */
	bool limited = status == 429 || retry_is_block(answer) ||
	    (status == 401 && !retry->bot);
	uint32_t failed_ms = 1000U << retry->failed;

	if (status >= 200 && status < 300) {
		verdict.outcome = REST_DONE;
	} else if ((status == 401 && answer->code == CODE_TOKEN_DEAD) ||
	    (status == 404 && answer->code == CODE_UNKNOWN_INTERACTION)) {
		verdict.outcome = REST_GONE;
	} else if (limited && once) {
		verdict.outcome = REST_DROPPED;
	} else if (limited) {
		/* as long as Discord says */
		verdict.again = ++retry->limited <= RETRY_LIMITED;
		verdict.wait_ms = retry_pause_ms(answer) + jitter % 90;
	} else if (status == 404) {
		decide_missing(retry, answer, now_ms, &verdict);
	} else if (status > 0 && status != 408 && status < 500) {
		verdict.outcome = REST_REFUSED;
	} else {
		verdict.again = !once && retry->failed++ < RETRY_FAILED;
		verdict.wait_ms = failed_ms + jitter % (failed_ms / 4);
	}
	/* another try, if it may still begin then */
	verdict.again = verdict.again &&
	    now_ms + verdict.wait_ms <= retry->deadline_ms;
	return verdict;
}
