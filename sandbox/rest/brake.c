/* SPDX-License-Identifier: MIT */
#include "rest/brake.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/shared_file.h"

/* Ten whole minutes and the one that goes on: never too few are counted. */
#define MINUTES 11
#define MINUTE_MS 60000
/* A bucket is its minute (since 1970), and how many there were in it. */
#define COUNT_BITS 24
#define COUNT_MOST ((UINT64_C(1) << COUNT_BITS) - 1)

/* The file.  All zero: nothing has happened. */
struct brake {
	_Atomic int64_t blocked_until_ms; /* 0: there is no block */
	_Atomic uint64_t buckets[MINUTES];
};

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 &&
	sizeof(struct brake) == 8 + 8 * MINUTES,
    "other processes must see whole numbers, in the same places");

struct brake *
brake_open(const char *path, struct err *err)
{
	return shared_file_open(path, sizeof(struct brake), err);
}

void
brake_close(struct brake *brake)
{
	shared_file_close(brake, sizeof(*brake));
}

/* ---- the block ---- */

/* How long it still lasts.  No block of ours lasts longer than the most: then
 * it is no number of ours, or the clock was set. */
static int64_t
block_left(int64_t until_ms, int64_t now_ms)
{
	if (until_ms <= now_ms || until_ms - BRAKE_BLOCK_MOST_MS > now_ms)
		return 0;
	return until_ms - now_ms;
}

bool
brake_block(struct brake *brake, int64_t now_ms, int64_t for_ms)
{
	_Atomic int64_t *until = &brake->blocked_until_ms;
	int64_t before = atomic_load(until);
	int64_t left;

	if (for_ms > BRAKE_BLOCK_MOST_MS)
		for_ms = BRAKE_BLOCK_MOST_MS;
	do {
		left = block_left(before, now_ms);
		if (for_ms <= left)
			return false;
	} while (!atomic_compare_exchange_weak(until, &before,
	    now_ms + for_ms));
	return left == 0;
}

bool
brake_take_end(struct brake *brake, int64_t now_ms)
{
	_Atomic int64_t *until = &brake->blocked_until_ms;
	int64_t before = atomic_load(until);

	return before != 0 && block_left(before, now_ms) == 0 &&
	    atomic_compare_exchange_strong(until, &before, 0);
}

/* ---- the count ---- */

/* One bucket's, if it is of the minutes that count. */
static int64_t
bucket_count(uint64_t bucket, int64_t minute)
{
	int64_t of = (int64_t)(bucket >> COUNT_BITS);

	return of > minute - MINUTES && of <= minute ?
	    (int64_t)(bucket & COUNT_MOST) :
	    0;
}

struct brake_state
brake_look(const struct brake *brake, int64_t now_ms)
{
	struct brake_state state = {
		.blocked_ms = block_left(atomic_load(&brake->blocked_until_ms),
		    now_ms),
	};

	for (size_t i = 0; i < MINUTES; i++)
		state.invalid += bucket_count(atomic_load(&brake->buckets[i]),
		    now_ms / MINUTE_MS);
	return state;
}

bool
brake_count(struct brake *brake, int64_t now_ms)
{
	int64_t minute = now_ms / MINUTE_MS;
	_Atomic uint64_t *bucket = &brake->buckets[minute % MINUTES];
	uint64_t before = atomic_load(bucket);
	uint64_t after;

	/* what is there of another minute gives way */
	do {
		after = (uint64_t)minute << COUNT_BITS;
		if (before >> COUNT_BITS == (uint64_t)minute)
			after = before;
		if ((after & COUNT_MOST) < COUNT_MOST)
			after++;
	} while (!atomic_compare_exchange_weak(bucket, &before, after));
	return brake_look(brake, now_ms).invalid > BRAKE_HALT &&
	    brake_block(brake, now_ms, BRAKE_HALT_MS);
}

/* ---- for an operator ---- */

int
brake_read(const char *path, int64_t now_ms, struct brake_state *state,
    struct err *err)
{
	const struct brake *brake = shared_file_read(path, sizeof(*brake), err);

	if (brake == NULL)
		return -1;
	*state = brake_look(brake, now_ms);
	shared_file_close(brake, sizeof(*brake));
	return 0;
}
