/* SPDX-License-Identifier: MIT */
#ifndef CALL_H
#define CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rest.h"
#include "retry.h"
#include "transfer.h"

struct err;

/*
 * The inside of struct rest, and the loop of tries around one exchange.
 * transfer.c does an exchange, retry.c decides what follows from it, call.c
 * keeps what must be remembered between calls: when a token's bucket is free
 * again, and until when everything is blocked (a global limit, Cloudflare).
 */
#define REST_BUCKETS 32

struct rest_bucket {
	uint64_t key; /* call_key() of the token */
	int64_t free_at_ms;
};

struct rest {
	struct transfer *transfer;
	char *api_base;
	char *authorization; /* "Bot …", "" without a token */
	int64_t application_id;
	bool direct; /* api_base is on this machine */
	int stop_fd;
	int64_t blocked_until_ms;
	struct rest_bucket buckets[REST_BUCKETS];
	size_t next_bucket;
};

/* One call: a request that is tried until it is decided. */
struct call {
	struct transfer_request request;
	uint64_t key;	  /* of its bucket, 0: none */
	int64_t until_ms; /* monotonic: every try has ended by then */
	struct retry retry;
};

/* The bucket of a token; never 0. */
uint64_t call_key(const char *token);

/* Fills reply; err only when the outcome is not REST_DONE. */
enum rest_outcome call_run(struct rest *rest, struct call *call,
    struct rest_reply *reply, struct err *err);

#endif
