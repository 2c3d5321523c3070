/* SPDX-License-Identifier: MIT */
#ifndef RETRY_H
#define RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "rest/rest.h"

/*
 * What to do after one try of a call, which may be made twice: a pure decision,
 * so that every row of the policy is tested without a network and without
 * waiting.
 *
 *	2xx		done
 *	429		wait for what Discord says, RETRY_LIMITED times at most
 *	403 of		the same: Cloudflare blocks this host.  That is 40333,
 *	  Cloudflare	or an answer without Discord's JSON
 *	401		the same, unless it is about the bot's token: Discord
 *			does not take a good token at this moment
 *	404		again for RETRY_MISSING_MS, six times at most: right
 *			after a deferral it often means "not yet" (10008, the
 *			message was deleted: RETRY_DELETED_MS; 10062: never).
 *			Then the token is never used again
 *	401 with 50027	gone: the token is dead
 *	408, 5xx, none	again after 1, 2, 4, 8 s and some jitter
 *	all other	refused
 *
 * What is not REST_FINAL has one try, and is dropped where that would wait.
 */
#define RETRY_LIMITED 5
#define RETRY_FAILED 4
#define RETRY_MISSING_MS 10000
#define RETRY_DELETED_MS 3000

/* The tries of one call so far; fill the first three, and what calls with the
 * same token have met in 404s, zero the others. */
struct retry {
	enum rest_patience patience;
	int64_t deadline_ms; /* monotonic: no try begins after it */
	bool bot;	     /* with the bot's token */
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

/* Does the answer hold for all that we send, not for this call alone? */
bool retry_is_block(const struct rest_reply *answer);
/* Is it one of those that Discord counts (brake.h)? */
bool retry_is_invalid(const struct rest_reply *answer);
/* After 401, 403 or 429: for how long nothing of the kind may be sent. */
int64_t retry_pause_ms(const struct rest_reply *answer);

/* answer: what a try came to.  jitter: any number, for the spread of the
 * waits. */
struct retry_verdict retry_decide(struct retry *retry,
    const struct rest_reply *answer, int64_t now_ms, uint32_t jitter);

#endif
