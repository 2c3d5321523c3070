/* SPDX-License-Identifier: MIT */
#ifndef LIMITER_H
#define LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#include "rest/rest.h"

struct err;

/*
 * Rate limits that Discord reported to one worker, shared by all: the end of a
 * block (Cloudflare's, or a global limit), and the number of invalid requests
 * (401, 403, 429) in the last ten minutes.  Discord bans the host's address at
 * 10,000 of them.  The limiter stops everybody long before.
 *
 * Every worker maps one small file.  Its numbers change atomically, so a killed
 * worker leaves no lock behind.  Times are those of the wall clock, as the file
 * may be older than the host's boot.  The file is not trusted: no block lasts
 * longer than LIMITER_BLOCK_MOST_MS.
 */
struct limiter;

/* From this number of invalid requests on, progress edits are dropped. */
#define LIMITER_SPARE 500
/* From this number on, each further one blocks all for LIMITER_HALT_MS. */
#define LIMITER_HALT 1000
#define LIMITER_HALT_MS 60000
#define LIMITER_BLOCK_MOST_MS 3600000

struct limiter_state {
	int64_t blocked_ms; /* remaining time of the block; 0: none */
	int64_t invalid;    /* in the last ten minutes, or eleven */
};

/* Map the file, and make it if it is missing; path NULL: memory of this process
 * alone.  Returns NULL if the file cannot be opened, or is none of ours
 * (another owner, another size, no regular file). */
struct limiter *limiter_open(const char *path, struct err *err);
void limiter_close(struct limiter *limiter);

/* In all of these functions now_ms is the wall clock. */
struct limiter_state limiter_read_state(const struct limiter *limiter,
    int64_t now_ms);
/* Block all workers for this time; a longer block stays as it is.  True: there
 * was no block before. */
bool limiter_block(struct limiter *limiter, int64_t now_ms, int64_t for_ms);
/* Has a block ended?  True for the first caller after its end, and only
 * once. */
bool limiter_is_over(struct limiter *limiter, int64_t now_ms);
/* Count an invalid request.  True: a block begins with it. */
bool limiter_count(struct limiter *limiter, int64_t now_ms);

/* Read the state for an operator, who need not own the file. */
int limiter_read_file(const char *path, int64_t now_ms,
    struct limiter_state *state, struct err *err);

/* ---- retries ---- */

/*
 * The decision that follows each try of a call.  It is pure, so every row of
 * the policy is tested without a network and without waiting.  Every call may
 * be made twice.
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
 * Calls that are not REST_FINAL have one try, and are dropped where they would
 * have to wait.
 */
#define RETRY_LIMITED 5
#define RETRY_FAILED 4
#define RETRY_MISSING_MS 10000
#define RETRY_DELETED_MS 3000

/* Tries of one call so far.  The caller fills the first three fields and the
 * 404s of earlier calls with the same token; all others start at zero. */
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
	bool again; /* try again after wait_ms */
	int64_t wait_ms;
	enum rest_outcome outcome; /* result if there is no further try */
};

/* Does the answer hold for all that we send, not for this call alone? */
bool retry_is_block(const struct rest_reply *answer);
/* Does Discord count the request as invalid (limiter.h)? */
bool retry_is_invalid(const struct rest_reply *answer);
/* Time after a 401, 403 or 429 in which no such request may be sent. */
int64_t retry_pause_ms(const struct rest_reply *answer);

/* answer: the result of a try.  jitter: any number, for the spread of the
 * waits. */
struct retry_verdict retry_decide(struct retry *retry,
    const struct rest_reply *answer, int64_t now_ms, uint32_t jitter);

#endif
