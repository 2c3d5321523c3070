/* SPDX-License-Identifier: MIT */
#ifndef WARM_H
#define WARM_H

struct pool;

/*
 * What stays warm, and when it is replaced: three looks at a pool, which the
 * scheduler takes each time that something has changed.
 */

/* Those that have met IL_API_RUNS go.  One that is kept ready waits until
 * another one is, where there is a place for both: a start takes its time, and
 * somebody may come meanwhile.  It does not wait for ever. */
void warm_end_worn(struct pool *pool);
/* Those go that nobody may get, or that nobody came for in IL_WARM_SECONDS, or
 * IL_SESSION_SECONDS if something is kept in them; and beyond IL_WARM_CELLS
 * those unused for the longest time. */
void warm_trim(struct pool *pool);
/* Make up for what was taken of those that are kept ready. */
void warm_refill(struct pool *pool);

#endif
