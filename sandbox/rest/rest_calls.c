/* SPDX-License-Identifier: MIT */
/*
 * Discord's REST API: one function for each route, and the loop of tries around
 * an exchange.  transfer.c does an exchange, limiter.c decides what follows.
 */
#include "rest/rest.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/basics.h"
#include "base/text.h"
#include "rest/limiter.h"
#include "rest/transfer.h"

#define URL_MAX 4096
#define UNRESERVED "-._~" /* of RFC 3986, with letters and digits */
#define ONCE_MS 5000
#define REGISTER_MS 60000
#define REST_BUCKETS 256
#define REST_TIMEOUT_MS 15000	/* of one exchange */
#define RETRY_AFTER_MOST 3600.0 /* seconds */
#define DOWNLOAD_TRIES 3
#define DOWNLOAD_PAUSE_MS 500
#define DOWNLOAD_ERROR_MAX 65536 /* largest answer that is no file */
/* Time that a call still has once the process should end. */
#define STOP_GRACE_MS 10000

/* State of one token: the end of its rate limit, and the 404s of its calls. */
struct bucket {
	uint64_t key; /* of the token, odd; 0: none */
	int64_t free_at_ms;
	int missing;
	int64_t missing_since_ms;
	bool gone; /* never again */
};

struct rest {
	struct transfer *transfer;
	const char *api_base;
	char *authorization; /* the header; NULL without a token */
	int64_t application_id;
	int stop_fd;
	/* Limits of later calls: of all, and of those with the same token. */
	struct limiter *limiter;
	struct bucket buckets[REST_BUCKETS];
	struct bucket no_bucket; /* of calls without one */
	void (*tell)(void *arg, const struct rest_exchange *exchange);
	void *tell_arg;
};

/* A request that is tried until it is decided. */
struct call {
	struct transfer_request request;
	enum rest_route route;
	uint64_t key;	    /* of its bucket, 0: none */
	int64_t until_ms;   /* monotonic: every try has ended by then */
	struct buf *answer; /* body of the last answer; NULL: not wanted */
	struct retry retry;
};

/* Timeout of an exchange; larger bodies have more time. */
static int
rest_timeout_ms(size_t bytes)
{
	enum { MOST_MS = 60000, BYTES_PER_MS = 512 };
	size_t timeout_ms = REST_TIMEOUT_MS + bytes / BYTES_PER_MS;

	return timeout_ms < MOST_MS ? (int)timeout_ms : MOST_MS;
}

struct rest *
rest_new(const char *api_base, const char *bot_token, int64_t application_id,
    const char *limiter_path, int stop_fd, struct err *err)
{
	struct transfer *transfer = transfer_new(err);
	struct limiter *limiter = NULL;
	struct rest *rest;

	if (transfer == NULL)
		return NULL;
	if (limiter_path != NULL &&
	    (limiter = limiter_open(limiter_path, err)) == NULL)
		log_warn("%s: Discord's limits are not shared", err->text);
	if (limiter == NULL && (limiter = limiter_open(NULL, err)) == NULL) {
		transfer_free(transfer);
		return NULL;
	}
	rest = xcalloc(1, sizeof(*rest));
	rest->transfer = transfer;
	rest->limiter = limiter;
	rest->api_base = api_base;
	rest->application_id = application_id;
	rest->stop_fd = stop_fd;
	if (bot_token[0] != '\0')
		rest->authorization = xprintf("Authorization: Bot %s",
		    bot_token);
	return rest;
}

void
rest_free(struct rest *rest)
{
	if (rest == NULL)
		return;
	transfer_free(rest->transfer);
	limiter_close(rest->limiter);
	free(rest->authorization);
	free(rest);
}

/* ---- answers ---- */

bool
rest_is_moderated(const struct rest_reply *reply)
{
	enum { MESSAGE = 200000, TITLE = 200001, HARMFUL_LINKS = 240000 };

	return reply->code == MESSAGE || reply->code == TITLE ||
	    reply->code == HARMFUL_LINKS;
}

/* Add what the body says, which may be any bytes. */
static void
read_body(struct rest_reply *reply, const struct buf *body)
{
	json_auto_t *root = json_loadb(buf_str(body), body->len, 0, NULL);
	const json_t *after = json_object_get(root, "retry_after");
	const json_t *code = json_object_get(root, "code");
	const char *message = json_string_value(json_object_get(root,
	    "message"));
	double seconds = json_number_value(after);

	/* a limit need not have a code */
	reply->json = message != NULL &&
	    (json_is_integer(code) || reply->status == 429);
	reply->code = json_integer_value(code);
	reply->global = json_is_true(json_object_get(root, "global"));
	/* the body is more exact than the header */
	if (json_is_number(after) && seconds >= 0.0 &&
	    seconds <= RETRY_AFTER_MOST)
		reply->retry_after_ms = (int64_t)(seconds * 1000.0);
	(void)snprintf(reply->message, sizeof(reply->message), "%s",
	    message != NULL ? message : "");
}

/* ---- counters ---- */

void
rest_watch(struct rest *rest,
    void (*tell)(void *arg, const struct rest_exchange *exchange), void *arg)
{
	rest->tell = tell;
	rest->tell_arg = arg;
}

/* Report an exchange to the function of rest_watch(). */
static void
report_exchange(const struct rest *rest, enum rest_route route,
    int64_t since_us, const struct rest_reply *reply)
{
	struct rest_exchange exchange = {
		.route = route,
		.status = reply->status,
		.took_us = clock_monotonic_us() - since_us,
		.blocked_ms = limiter_read_state(rest->limiter, clock_wall_ms())
				  .blocked_ms,
	};

	if (retry_is_block(reply) && !reply->global)
		exchange.limit = REST_LIMIT_BLOCK;
	else if (reply->status == 429)
		exchange.limit = reply->global ? REST_LIMIT_GLOBAL :
		    reply->shared	       ? REST_LIMIT_SHARED :
						 REST_LIMIT_ROUTE;
	if (rest->tell != NULL)
		rest->tell(rest->tell_arg, &exchange);
}

/* ---- waiting ---- */

/* Bucket of a call, which may evict another token's.  Calls without a token
 * share one whose content is never read. */
static struct bucket *
bucket_of(struct rest *rest, const struct call *call)
{
	struct bucket
	    *bucket = &rest->buckets[(call->key >> 32) % REST_BUCKETS];

	if (call->key == 0)
		bucket = &rest->no_bucket;
	if (bucket->key != call->key)
		*bucket = (struct bucket){ .key = call->key };
	return bucket;
}

/* Wait until until_ms.  Once the stop descriptor is readable the call has
 * STOP_GRACE_MS left; the descriptor is never read.  False: the deadline comes
 * first. */
static bool
wait_until(const struct rest *rest, struct call *call, int64_t until_ms)
{
	struct pollfd stop = { .fd = rest->stop_fd, .events = POLLIN };
	int64_t now_ms = clock_monotonic_ms();
	int64_t end_ms;

	while (now_ms < until_ms && until_ms <= call->retry.deadline_ms) {
		if (poll(&stop, 1, clock_poll_timeout(until_ms)) > 0) {
			stop.fd = -1;
			end_ms = clock_monotonic_ms() + STOP_GRACE_MS;
			/* no try begins or lasts past this end */
			if (call->until_ms > end_ms)
				call->until_ms = end_ms;
			if (call->retry.deadline_ms > end_ms)
				call->retry.deadline_ms = end_ms;
		}
		now_ms = clock_monotonic_ms();
	}
	return until_ms <= call->retry.deadline_ms || now_ms >= until_ms;
}

void
rest_pause(const struct rest *rest, int64_t ms)
{
	struct pollfd stop = { .fd = rest->stop_fd, .events = POLLIN };

	if (ms > 0)
		(void)poll(&stop, 1,
		    clock_poll_timeout(clock_monotonic_ms() + ms));
}

void
rest_note_end(struct rest *rest)
{
	if (limiter_is_over(rest->limiter, clock_wall_ms()))
		log_info("the block by Discord has passed");
}

/* Wait until no block is in force and the token's bucket is free.  Another
 * process may report a block meanwhile.  False: *outcome is the end. */
static bool
wait_for_turn(struct rest *rest, struct call *call, enum rest_outcome *outcome,
    struct err *err)
{
	enum rest_patience patience = call->retry.patience;
	const struct bucket *bucket = bucket_of(rest, call);

	for (;;) {
		struct limiter_state limiter;
		int64_t at_ms;
		bool waits;

		rest_note_end(rest);
		limiter = limiter_read_state(rest->limiter, clock_wall_ms());
		at_ms = clock_monotonic_ms() + limiter.blocked_ms;
		if (call->key != 0 && bucket->free_at_ms > at_ms)
			at_ms = bucket->free_at_ms;
		waits = at_ms > clock_monotonic_ms();
		if (limiter.blocked_ms > 0)
			(void)err_set(err, ERR_BUSY,
			    "Discord takes nothing for %" PRId64 " s more",
			    limiter.blocked_ms / 1000 + 1);
		*outcome = REST_DROPPED;
		if ((waits && patience != REST_FINAL) ||
		    (limiter.invalid >= LIMITER_SPARE &&
			patience == REST_PROGRESS))
			return false;
		*outcome = REST_LATER;
		if (at_ms > call->retry.deadline_ms)
			return false;
		if (!waits)
			return true;
		if (!wait_until(rest, call, at_ms))
			return false;
	}
}

/* ---- one call ---- */

/* Store the limits that the answer reports, for all later calls. */
static void
remember(struct rest *rest, const struct call *call,
    const struct rest_reply *reply)
{
	struct bucket *bucket = bucket_of(rest, call);
	int64_t now_ms = clock_monotonic_ms();
	int64_t pause_ms = retry_pause_ms(reply);

	if (reply->remaining == 0 && reply->reset_after_ms >= 0)
		bucket->free_at_ms = now_ms + reply->reset_after_ms;
	if (reply->status == 429 || reply->status == 401)
		bucket->free_at_ms = now_ms + pause_ms;
	if (retry_is_block(reply) &&
	    limiter_block(rest->limiter, clock_wall_ms(), pause_ms))
		log_warn("Discord blocks us (status %d, code %" PRId64
			 "): nothing is sent for %" PRId64 " s",
		    reply->status, reply->code, pause_ms / 1000);
	if (retry_is_invalid(reply) &&
	    limiter_count(rest->limiter, clock_wall_ms()))
		log_warn("more than %d invalid requests in ten minutes: "
			 "nothing is sent to Discord for %d s",
		    LIMITER_HALT, LIMITER_HALT_MS / 1000);
}

/* Make one try, which ends with the call at the latest. */
static void
try_once(struct rest *rest, const struct call *call, struct rest_reply *reply,
    struct err *err)
{
	auto_buf struct buf own = BUF_INIT(REST_ANSWER_MAX);
	struct buf *body = call->answer != NULL ? call->answer : &own;
	struct transfer_request request = call->request;
	int64_t left_ms = call->until_ms - clock_monotonic_ms();
	int64_t since_us = clock_monotonic_us();

	if (left_ms < request.timeout_ms)
		request.timeout_ms = left_ms < 1 ? 1 : (int)left_ms;
	buf_reset(body);
	(void)transfer_run(rest->transfer, &request, reply, body, err);
	read_body(reply, body);
	remember(rest, call, reply);
	report_exchange(rest, call->route, since_us, reply);
}

/* Make tries until retry_decide() ends the call.  Fills reply, and err unless
 * the outcome is REST_DONE. */
static enum rest_outcome
call_run(struct rest *rest, struct call *call, const struct buf *url,
    struct rest_reply *reply, struct err *err)
{
	struct err last = { ERR_TIMEOUT, "no try within the deadline" };
	struct bucket *bucket = bucket_of(rest, call);
	enum rest_outcome outcome;
	bool again;

	*reply = (struct rest_reply){ 0 };
	if (url->overflow || bucket->gone) {
		(void)err_set(err, ERR_INPUT,
		    bucket->gone ? "the message or its token is gone" :
				   "the address is too long");
		return REST_GONE;
	}
	if (call->key != 0) {
		call->retry.missing = bucket->missing;
		call->retry.missing_since_ms = bucket->missing_since_ms;
	}
	call->request.url = buf_str(url);
	again = wait_for_turn(rest, call, &outcome, &last);
	while (again) {
		struct retry_verdict next;
		int64_t now_ms;

		try_once(rest, call, reply, &last);
		now_ms = clock_monotonic_ms();
		next = retry_decide(&call->retry, reply, now_ms,
		    (uint32_t)clock_monotonic_us());
		outcome = next.outcome;
		bucket->missing = call->retry.missing;
		bucket->missing_since_ms = call->retry.missing_since_ms;
		bucket->gone = call->key != 0 && outcome == REST_GONE;
		again = next.again &&
		    wait_until(rest, call, now_ms + next.wait_ms) &&
		    wait_for_turn(rest, call, &outcome, &last);
	}
	if (outcome != REST_DONE && reply->status != 0)
		(void)err_set(err, ERR_UNAVAILABLE,
		    "Discord answered %d, code %" PRId64, reply->status,
		    reply->code);
	else if (outcome != REST_DONE)
		*err = last;
	return outcome;
}

/* ---- routes ---- */

/* No try of the call lasts longer than timeout_ms from now, or begins later
 * than hold_ms. */
static void
call_end_within(struct call *call, int64_t timeout_ms, int64_t hold_ms)
{
	int64_t now_ms = clock_monotonic_ms();

	call->until_ms = now_ms + timeout_ms;
	call->retry.deadline_ms = now_ms +
	    (hold_ms < timeout_ms ? hold_ms : timeout_ms);
}

enum rest_outcome
rest_send_message(struct rest *rest, const struct rest_target *target,
    const char *body, const struct rest_file *files, size_t file_count,
    enum rest_patience patience, struct rest_reply *reply, struct err *err)
{
	static const char *const methods[] = { [REST_ORIGINAL] = "PATCH",
		[REST_FURTHER] = "POST",
		[REST_DELETION] = "DELETE" };
	enum rest_message which = target->which;
	const char *token = target->token;
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	size_t bytes = body != NULL ? strlen(body) : 0;
	struct call call = {
		.request = {
			.method = methods[which],
			.body = body,
			.files = files,
			.file_count = file_count,
		},
		.route = which == REST_DELETION ? REST_ROUTE_DELETE :
						  REST_ROUTE_EDIT,
		.key = text_hash(token) | 1,
		.retry = { .patience = patience },
	};

	if (token[0] == '\0') {
		*reply = (struct rest_reply){ 0 };
		(void)err_set(err, ERR_INPUT, "there is no token");
		return REST_GONE;
	}
	for (size_t i = 0; i < file_count; i++)
		bytes += files[i].len;
	call.request.timeout_ms = patience != REST_FINAL && file_count == 0 ?
	    ONCE_MS :
	    rest_timeout_ms(bytes);
	/* tries end when the token dies */
	call_end_within(&call, target->until_ms - clock_wall_ms(),
	    REST_HOLD_MS);
	buf_addf(&url, "%s/webhooks/%" PRId64 "/", rest->api_base,
	    rest->application_id);
	text_add_escaped(&url, token, strlen(token), UNRESERVED);
	buf_adds(&url, which == REST_FURTHER ? "" : "/messages/@original");
	return call_run(rest, &call, &url, reply, err);
}

enum rest_outcome
rest_application(struct rest *rest, const char *method, const char *path,
    const char *body, enum rest_patience patience, struct buf *answer,
    struct rest_reply *reply, struct err *err)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	struct call call = {
		.request = {
			.method = method,
			.body = body,
			.headers = { rest->authorization },
			.timeout_ms = patience == REST_FINAL ?
			    REST_TIMEOUT_MS :
			    ONCE_MS,
		},
		.route = REST_ROUTE_APPLICATION,
		.answer = answer,
		.retry = { .patience = patience, .bot = true },
	};

	call_end_within(&call, REGISTER_MS, REGISTER_MS);
	buf_addf(&url, "%s/applications/%s", rest->api_base, path);
	return call_run(rest, &call, &url, reply, err);
}

/* ---- files that people have uploaded ---- */

/* Make one try.  The buffer has room for an error's text, too. */
static enum rest_outcome
download_once(struct rest *rest, const struct transfer_request *request,
    size_t max, void **data, size_t *len, struct err *err)
{
	auto_buf struct buf body = BUF_INIT(max > DOWNLOAD_ERROR_MAX ?
		max :
		DOWNLOAD_ERROR_MAX);
	struct rest_reply reply;
	int64_t since_us = clock_monotonic_us();
	int result = transfer_run(rest->transfer, request, &reply, &body, err);

	/* The limits of a file's host are none of the API's. */
	reply.json = true;
	reply.shared = false;
	report_exchange(rest, REST_ROUTE_FETCH, since_us, &reply);
	if (result < 0)
		return err->code == ERR_LIMIT ? REST_REFUSED : REST_LATER;
	if (reply.status != 200) {
		(void)err_set(err, ERR_UNAVAILABLE,
		    "the file's host answered %d", reply.status);
		return reply.status == 429 || reply.status >= 500 ? REST_LATER :
								    REST_GONE;
	}
	if (body.len > max) {
		(void)err_set(err, ERR_LIMIT, "longer than announced");
		return REST_REFUSED;
	}
	*data = buf_steal(&body, len);
	return REST_DONE;
}

enum rest_outcome
rest_download(struct rest *rest, const char *url, size_t max, void **data,
    size_t *len, struct err *err)
{
	int64_t until_ms = clock_monotonic_ms() + rest_timeout_ms(max);
	struct transfer_request request = { .method = "GET", .url = url };
	enum rest_outcome outcome = REST_LATER;

	*data = NULL;
	*len = 0;
	if (!transfer_may_download(url, rest->api_base)) {
		(void)err_set(err, ERR_INPUT,
		    "the attachment is not on Discord's hosts");
		return REST_REFUSED;
	}
	for (int i = 0; i < DOWNLOAD_TRIES && outcome == REST_LATER; i++) {
		if (i > 0)
			(void)poll(NULL, 0, DOWNLOAD_PAUSE_MS);
		request.timeout_ms = clock_poll_timeout(until_ms);
		if (request.timeout_ms == 0) /* for libcurl: for ever */
			break;
		outcome = download_once(rest, &request, max, data, len, err);
	}
	return outcome;
}
