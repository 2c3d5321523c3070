/* SPDX-License-Identifier: MIT */
#ifndef REST_PARTS_H
#define REST_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "rest.h"

struct brake;
struct transfer;

/* What routes.c and download.c share. */
#define REST_BUCKETS 256
#define REST_TIMEOUT_MS 15000 /* of one exchange */

/* What is known of a token: when it may be used again, and the 404s that its
 * calls have met so far. */
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
	/* What limits told, for the calls to come: all of them, and those with
	 * the same token. */
	struct brake *brake;
	struct bucket buckets[REST_BUCKETS];
	struct bucket no_bucket; /* of calls without one */
	void (*tell)(void *arg, const struct rest_exchange *exchange);
	void *tell_arg;
};

/* More for what takes longer to send or to fetch. */
static inline int
rest_timeout_ms(size_t bytes)
{
	enum { MOST_MS = 60000, BYTES_PER_MS = 512 };
	size_t timeout_ms = REST_TIMEOUT_MS + bytes / BYTES_PER_MS;

	return timeout_ms < MOST_MS ? (int)timeout_ms : MOST_MS;
}

/* Who counts is told of an exchange that began then. */
void rest_tell(const struct rest *rest, enum rest_route route, int64_t since_us,
    const struct rest_reply *reply);

#endif
