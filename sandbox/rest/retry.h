/* SPDX-License-Identifier: MIT */
#ifndef RETRY_H
#define RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "rest.h"

/*
 * What to do after one try of a call, which may be made twice: a pure decision,
 * so that every row of the policy is tested without a network and without
 * waiting.
 *
 *	2xx		done
 *	429		wait for what Discord says, RETRY_LIMITED times at most
 *	404		again for RETRY_MISSING_MS: right after a deferral it
 *			often means "not yet" (10008, the message was deleted:
 *			RETRY_DELETED_MS; 10062: never)
 *	401 with 50027	gone: the token is dead
 *	408, 5xx, none	again after 1, 2, 4, 8 s and some jitter
 *	all other	refused
 *
 * A progress edit has one try and is dropped where a final one would wait.
 */
#define RETRY_LIMITED 5
#define RETRY_FAILED 4
#define RETRY_MISSING_MS 10000
#define RETRY_DELETED_MS 3000

/* The tries of one call so far; fill the first two, zero the others. */
struct retry {
	enum rest_patience patience;
	int64_t deadline_ms; /* monotonic: no try begins after it */
	int limited;
	int failed;
	int missing;
	int64_t missing_since_ms;
};

struct retry_verdict {
	bool again; /* after wait_ms; otherwise: */
	int64_t wait_ms;
	enum rest_outcome outcome; /* as well when there is no time for it */
};

/* answer: what a try came to.  jitter: any number, for the spread of the
 * waits. */
struct retry_verdict retry_decide(struct retry *retry,
    const struct rest_reply *answer, int64_t now_ms, uint32_t jitter);

#endif
