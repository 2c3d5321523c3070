/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>

#include <jansson.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"

/* Nobody waits longer than this for a block to pass: the call may come
 * again. */
#define BLOCK_MOST_MS 30000
/* What a call may still take when the process was told to end. */
#define STOP_GRACE_MS 10000

/* ---- waiting ---- */

/* FNV-1a; 0 means "no bucket". */
uint64_t
call_key(const char *token)
{
	uint64_t hash = 14695981039346656037U;

	for (const char *p = token; *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211U;
	return hash | 1;
}

/* What is remembered of a bucket; NULL: nothing. */
static struct rest_bucket *
bucket_find(struct rest *rest, uint64_t key)
{
	for (size_t i = 0; i < REST_BUCKETS; i++)
		if (rest->buckets[i].key == key)
			return &rest->buckets[i];
	return NULL;
}

/* A new bucket takes the place of the oldest.  key 0: none. */
static void
bucket_remember(struct rest *rest, uint64_t key, int64_t free_at_ms)
{
	struct rest_bucket *bucket = bucket_find(rest, key);

	if (key == 0)
		return;
	if (bucket == NULL) {
		bucket = &rest->buckets[rest->next_bucket];
		rest->next_bucket = (rest->next_bucket + 1) % REST_BUCKETS;
	}
	*bucket = (struct rest_bucket){ .key = key, .free_at_ms = free_at_ms };
}

/* No try begins or lasts past this end. */
static void
shorten(struct call *call, int64_t end_ms)
{
	if (call->retry.deadline_ms > end_ms)
		call->retry.deadline_ms = end_ms;
	if (call->until_ms > end_ms)
		call->until_ms = end_ms;
}

/* Wait until the time has come.  The stop descriptor is only looked at: from
 * when it is readable the call has STOP_GRACE_MS left. */
static bool
wait_until(const struct rest *rest, struct call *call, int64_t until_ms)
{
	struct pollfd stop = { .fd = rest->stop_fd, .events = POLLIN };
	int64_t now_ms = clock_monotonic_ms();

	while (now_ms < until_ms && until_ms <= call->retry.deadline_ms) {
		if (poll(&stop, 1, clock_poll_timeout(until_ms)) > 0) {
			stop.fd = -1;
			shorten(call, clock_monotonic_ms() + STOP_GRACE_MS);
		}
		now_ms = clock_monotonic_ms();
	}
	return until_ms <= call->retry.deadline_ms || now_ms >= until_ms;
}

/* Before a try: the block and the token's bucket must be free. */
static bool
wait_for_turn(struct rest *rest, struct call *call, enum rest_outcome *outcome)
{
	const struct rest_bucket *bucket = bucket_find(rest, call->key);
	int64_t now_ms = clock_monotonic_ms();
	int64_t free_at_ms = rest->blocked_until_ms;
	bool blocked = free_at_ms > now_ms + BLOCK_MOST_MS;

	if (call->key != 0 && bucket != NULL && bucket->free_at_ms > free_at_ms)
		free_at_ms = bucket->free_at_ms;
	*outcome = REST_LATER;
	if (free_at_ms > now_ms && call->retry.patience == REST_PROGRESS) {
		*outcome = REST_DROPPED;
		return false;
	}
	if (blocked || now_ms > call->retry.deadline_ms)
		return false;
	return wait_until(rest, call, free_at_ms);
}

/* ---- what an answer tells ---- */

/* The body, if it is Discord's own. */
static void
read_json(const struct transfer_answer *answer, struct retry_answer *result,
    struct rest_reply *reply, bool *global)
{
	json_auto_t *root = json_loadb(buf_str(&answer->body), answer->body.len,
	    0, NULL);
	const json_t *after = json_object_get(root, "retry_after");
	const char *id = json_string_value(json_object_get(root, "id"));
	double seconds = json_number_value(after);

	if (root == NULL)
		return;
	result->json = true;
	result->code = json_integer_value(json_object_get(root, "code"));
	*global = json_is_true(json_object_get(root, "global"));
	if (json_is_number(after) && seconds >= 0.0 && seconds <= 3600.0)
		result->retry_after_ms = (int64_t)(seconds * 1000.0);
	if (id != NULL && strlen(id) < sizeof(reply->message_id))
		memcpy(reply->message_id, id, strlen(id) + 1);
}

/* For the calls after this one: it may itself not wait for so long. */
static void
remember_limit(struct rest *rest, const struct call *call,
    const struct retry_answer *answer, bool global, int64_t now_ms)
{
	int64_t wait_ms = answer->retry_after_ms;

	if (global || !answer->json)
		rest->blocked_until_ms = now_ms +
		    (wait_ms >= 0 ? wait_ms : BLOCK_MOST_MS);
	else if (wait_ms >= 0)
		bucket_remember(rest, call->key, now_ms + wait_ms);
}

/* What is decided from, with all that is remembered of it. */
static struct retry_answer
read_answer(struct rest *rest, const struct call *call,
    const struct transfer_answer *answer, struct rest_reply *reply)
{
	struct retry_answer result = {
		.status = answer->status,
		.retry_after_ms = answer->retry_after_ms,
	};
	int64_t now_ms = clock_monotonic_ms();
	bool global = false;

	read_json(answer, &result, reply, &global);
	reply->status = result.status;
	reply->code = result.code;

	if (answer->remaining == 0 && answer->reset_after_ms >= 0)
		bucket_remember(rest, call->key,
		    now_ms + answer->reset_after_ms);
	if (result.status == 429)
		remember_limit(rest, call, &result, global, now_ms);
	return result;
}

/* ---- one call ---- */

/* For jitter, not for secrets. */
static uint32_t
random_number(void)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (uint32_t)clock_monotonic_us();
	return number;
}

/* A try ends with the call. */
static int
try_timeout(const struct call *call, int timeout_ms)
{
	int64_t left_ms = call->until_ms - clock_monotonic_ms();

	if (left_ms >= timeout_ms)
		return timeout_ms;
	return left_ms < 1 ? 1 : (int)left_ms;
}

/* The end of a call; err says what the last try came to. */
static enum rest_outcome
give_up(enum rest_outcome outcome, const struct rest_reply *reply,
    const struct err *last, struct err *err)
{
	if (outcome == REST_DONE)
		return outcome;
	if (reply->status != 0)
		(void)err_set(err, ERR_UNAVAILABLE,
		    "Discord answered %d, code %" PRId64, reply->status,
		    reply->code);
	else
		*err = *last;
	return outcome;
}

enum rest_outcome
call_run(struct rest *rest, struct call *call, struct rest_reply *reply,
    struct err *err)
{
	struct err last = { ERR_TIMEOUT, "no try within the deadline" };
	int full_timeout_ms = call->request.timeout_ms;

	*reply = (struct rest_reply){ 0 };
	for (;;) {
		/* Wait until it may be, try, and ask what follows. */
		struct transfer_answer answer = { 0 };
		struct retry_answer seen;
		struct retry_verdict next;
		enum rest_outcome outcome = REST_LATER;
		int64_t now_ms;

		if (!wait_for_turn(rest, call, &outcome))
			return give_up(outcome, reply, &last, err);
		call->request.timeout_ms = try_timeout(call, full_timeout_ms);
		(void)transfer_run(rest->transfer, &call->request, &answer,
		    &last);
		seen = read_answer(rest, call, &answer, reply);
		transfer_answer_release(&answer);

		now_ms = clock_monotonic_ms();
		next = retry_decide(&call->retry, &seen, now_ms,
		    random_number());
		if (!next.again)
			return give_up(next.outcome, reply, &last, err);
		if (!wait_until(rest, call, now_ms + next.wait_ms))
			return give_up(REST_LATER, reply, &last, err);
	}
}
