/* SPDX-License-Identifier: MIT */
/* Targets that are one HTTP request: eval, ping; and commands, whose result
 * comes back as another. */
#include "base/basics.h"
#include "target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "http_client.h"

#define REQUEST_MAX (2 << 20)
/* More than il-fcgi remembers, so that none of them comes twice for it. */
#define PINGS 12288
/* The beginning of an edit that is no result. */
#define RUNNING "\"content\":\"Running "

struct exchange {
	struct http_client http;
	struct buf request;
	bool acknowledged;
	bool edited;
	unsigned int serial;
	char token[64];
};

static uint16_t
port_of(const struct target *target)
{
	int64_t port;

	if (!text_parse_int(target->words[0], 1, 65535, &port)) {
		fprintf(stderr, "bench_load: no port: %s\n", target->spec);
		exit(64);
	}
	return (uint16_t)port;
}

static void
exchange_release(struct lane *lane)
{
	struct exchange *exchange = lane->state;

	http_client_release(&exchange->http);
	buf_release(&exchange->request);
	free(exchange);
}

static struct exchange *
exchange_new(struct lane *lane,
    void (*answer)(void *, int, const struct buf *, const char *))
{
	struct exchange *exchange = xcalloc(1, sizeof(*exchange));

	http_client_init(&exchange->http, lane->bench->loop,
	    port_of(lane->target));
	exchange->http.answer = answer;
	exchange->http.arg = lane;
	buf_init(&exchange->request, REQUEST_MAX);
	return exchange;
}

static void
exchange_send(struct lane *lane, const struct buf *request)
{
	struct exchange *exchange = lane->state;

	if (lane->bench->fresh)
		http_client_close(&exchange->http);
	http_client_send(&exchange->http, request->data, request->len);
}

/* The answer is there, and true: it is 200 or 201. */
static bool
is_good(struct lane *lane, int status, const struct buf *body,
    const char *error)
{
	char what[32];

	lane->ended_us = clock_monotonic_us();
	if (error != NULL) {
		lane_done(lane, error);
		return false;
	}
	if (status == 200 || status == 201)
		return true;
	(void)snprintf(what, sizeof(what), "status %d", status);
	lane_fail(lane, what, body->data, body->len);
	return false;
}

/* ---- eval ---- */

static void
eval_answer(void *arg, int status, const struct buf *body, const char *error)
{
	struct lane *lane = arg;
	const struct buf *want = &lane->target->files[2];

	if (!is_good(lane, status, body, error))
		return;
	if (body->len == want->len &&
	    memcmp(body->data, want->data, want->len) == 0)
		lane_done(lane, NULL);
	else
		lane_fail(lane, "another answer", body->data, body->len);
}

static void *
eval_open(struct lane *lane)
{
	return exchange_new(lane, eval_answer);
}

static void
eval_start(struct lane *lane)
{
	exchange_send(lane, &lane->target->files[1]);
}

static void
connect_ahead(struct lane *lane)
{
	struct exchange *exchange = lane->state;

	if (!lane->bench->fresh)
		(void)http_client_connect(&exchange->http);
}

const struct target_type target_eval = {
	.name = "eval",
	.words = 3,
	.open = eval_open,
	.release = exchange_release,
	.prepare = connect_ahead,
	.start = eval_start,
};

/* ---- post: the same where the answer says more than is known ---- */

static void
post_answer(void *arg, int status, const struct buf *body, const char *error)
{
	struct lane *lane = arg;
	const struct buf *want = &lane->target->files[2];

	if (!is_good(lane, status, body, error))
		return;
	if (memmem(body->data, body->len, want->data, want->len) != NULL)
		lane_done(lane, NULL);
	else
		lane_fail(lane, "another answer", body->data, body->len);
}

static void *
post_open(struct lane *lane)
{
	return exchange_new(lane, post_answer);
}

const struct target_type target_post = {
	.name = "post",
	.words = 3,
	.open = post_open,
	.release = exchange_release,
	.prepare = connect_ahead,
	.start = eval_start,
};

/* ---- ping ---- */

static struct buf pings[PINGS];
static size_t next_ping;

static void
ping_answer(void *arg, int status, const struct buf *body, const char *error)
{
	struct lane *lane = arg;

	if (!is_good(lane, status, body, error))
		return;
	if (body->len >= 10 && memcmp(body->data, "{\"type\":1}", 10) == 0)
		lane_done(lane, NULL);
	else
		lane_fail(lane, "no PONG", body->data, body->len);
}

static void *
ping_open(struct lane *lane)
{
	for (size_t i = 0; i < PINGS && pings[i].data == NULL; i++) {
		buf_init(&pings[i], REQUEST_MAX);
		sign_ping(&lane->bench->signer, &pings[i]);
	}
	return exchange_new(lane, ping_answer);
}

static void
ping_start(struct lane *lane)
{
	exchange_send(lane, &pings[next_ping]);
	next_ping = (next_ping + 1) % PINGS;
}

const struct target_type target_ping = {
	.name = "ping",
	.words = 1,
	.open = ping_open,
	.release = exchange_release,
	.prepare = connect_ahead,
	.start = ping_start,
};

/* ---- commands ---- */

static bool
is_type(const struct buf *body, char type)
{
	return body->len >= 9 && memcmp(body->data, "{\"type\":", 8) == 0 &&
	    body->data[8] == type;
}

static void
ack_answer(void *arg, int status, const struct buf *body, const char *error)
{
	struct lane *lane = arg;

	if (!is_good(lane, status, body, error))
		return;
	if (is_type(body, '5'))
		lane_done(lane, NULL);
	else
		lane_fail(lane, "no deferral", body->data, body->len);
}

/* Sign the next one: an interaction's id may come only once. */
static void
command_sign(struct lane *lane)
{
	struct exchange *exchange = lane->state;
	const char *code = buf_str(&lane->target->files[2]);
	int64_t user;

	if (!text_parse_int(lane->target->words[1], 1, INT64_MAX / 2, &user)) {
		fprintf(stderr, "bench_load: no user: %s\n",
		    lane->target->spec);
		exit(64);
	}
	(void)snprintf(exchange->token, sizeof(exchange->token),
	    "lane-%zu-%d-%u", lane->number, (int)getpid(), ++exchange->serial);
	buf_reset(&exchange->request);
	if (*lane->target->words[2] != '/')
		code = NULL;
	sign_command(&lane->bench->signer, &exchange->request,
	    user + (int64_t)lane->index,
	    code != NULL ? "py" : lane->target->words[2], code,
	    exchange->token);
}

static void *
ack_open(struct lane *lane)
{
	return exchange_new(lane, ack_answer);
}

static void
command_prepare(struct lane *lane)
{
	command_sign(lane);
	connect_ahead(lane);
}

static void
ack_start(struct lane *lane)
{
	struct exchange *exchange = lane->state;

	exchange_send(lane, &exchange->request);
}

const struct target_type target_ack = {
	.name = "ack",
	.words = 3,
	.open = ack_open,
	.release = exchange_release,
	.prepare = command_prepare,
	.start = ack_start,
};

static void
command_answer(void *arg, int status, const struct buf *body, const char *error)
{
	struct lane *lane = arg;
	struct exchange *exchange = lane->state;
	const struct buf *want = &lane->target->files[3];

	if (!is_good(lane, status, body, error))
		return;
	if (is_type(body, '4') &&
	    memmem(body->data, body->len, want->data, want->len) != NULL) {
		samples_add(&lane->target->first, lane_ms(lane));
		lane_done(lane, NULL);
		return;
	}
	if (!is_type(body, '5')) {
		lane_fail(lane, "no deferral", body->data, body->len);
		return;
	}
	samples_add(&lane->target->first, lane_ms(lane));
	lane->ended_us = 0; /* its end is the edit's */
	exchange->acknowledged = true;
	if (exchange->edited) /* it overtook the deferral */
		lane_done(lane, NULL);
}

static void
command_edited(struct lane *lane, const char *token, const char *body,
    size_t len)
{
	struct exchange *exchange = lane->state;
	const struct buf *want = &lane->target->files[3];
	int64_t ended_us = clock_monotonic_us();

	if (strcmp(token, exchange->token) != 0 || exchange->edited)
		return; /* of one that has failed before */
	if (memmem(body, len, "\"cancel:", 9) != NULL ||
	    memmem(body, len, RUNNING, strlen(RUNNING)) != NULL)
		return; /* progress, no result */
	if (memmem(body, len, want->data, want->len) == NULL) {
		lane_fail(lane, "another result", body, len);
		return;
	}
	exchange->edited = true;
	lane->ended_us = ended_us;
	if (exchange->acknowledged)
		lane_done(lane, NULL);
}

static void *
command_open(struct lane *lane)
{
	return exchange_new(lane, command_answer);
}

static void
command_start(struct lane *lane)
{
	struct exchange *exchange = lane->state;

	exchange->acknowledged = false;
	exchange->edited = false;
	exchange_send(lane, &exchange->request);
}

const struct target_type target_command = {
	.name = "command",
	.words = 4,
	.open = command_open,
	.release = exchange_release,
	.prepare = command_prepare,
	.start = command_start,
	.edited = command_edited,
};
