/* SPDX-License-Identifier: MIT */
#ifndef BRAKE_H
#define BRAKE_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/*
 * What Discord's limits told one worker, for all of them: until when nobody may
 * send anything (Cloudflare's blocks, a global limit), and how many requests of
 * the last ten minutes were invalid to Discord (401, 403, 429).  At 10,000 of
 * those it bans the host's address; the brake holds long before.
 *
 * It is a small file that every worker maps: numbers that change atomically, so
 * there is no lock that somebody who is killed could keep.  Times are of the
 * wall clock, as the file may be older than the host's boot.  What stands in it
 * is not believed: nothing holds anybody up for more than BRAKE_BLOCK_MOST_MS.
 */
struct brake;

/* From so many invalid requests on, what can be left out is left out. */
#define BRAKE_SPARE 500
/* From so many on, each further one stops all for BRAKE_HALT_MS. */
#define BRAKE_HALT 1000
#define BRAKE_HALT_MS 60000
#define BRAKE_BLOCK_MOST_MS 3600000

struct brake_state {
	int64_t blocked_ms; /* nothing may be sent for so long; 0: it may */
	int64_t invalid;    /* in the last ten minutes, or eleven */
};

/* Map the file, which is made if it is missing; path NULL: memory of the
 * caller's own.  NULL: it is not a file of ours (another owner, another size,
 * no regular file), or cannot be opened. */
struct brake *brake_open(const char *path, struct err *err);
void brake_close(struct brake *brake);

/* now_ms, of all of these: wall clock. */
struct brake_state brake_look(const struct brake *brake, int64_t now_ms);
/* Nobody sends anything for so long; a block that lasts longer stays as it is.
 * True: a block begins here, there was none. */
bool brake_block(struct brake *brake, int64_t now_ms, int64_t for_ms);
/* A block has passed: true for the first who asks, and only once. */
bool brake_take_end(struct brake *brake, int64_t now_ms);
/* One more invalid request.  True: a block begins with it. */
bool brake_count(struct brake *brake, int64_t now_ms);

/* The same numbers for an operator, who need not own the file. */
int brake_read(const char *path, int64_t now_ms, struct brake_state *state,
    struct err *err);

#endif
