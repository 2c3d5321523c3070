/* SPDX-License-Identifier: MIT */
#ifndef WARM_H
#define WARM_H

#include <stdint.h>

struct pool;
struct ticket;

/*
 * What stays warm, and when it is replaced: looks at a pool, which the
 * scheduler takes each time that something has changed.
 */

/* A lease is asked for: what its run imports may come to be wanted. */
void warm_note(struct pool *pool, const struct ticket *ticket);
/* Those that have met IL_API_RUNS go.  One that is kept ready waits until
 * another one is, where there is a place for both: a start takes its time, and
 * somebody may come meanwhile.  It does not wait for ever. */
void warm_end_worn(struct pool *pool);
/* Those go that nobody may get, or that nobody came for in IL_WARM_SECONDS, or
 * IL_SESSION_SECONDS if something is kept in them; and beyond IL_WARM_CELLS
 * those unused for the longest time. */
void warm_trim(struct pool *pool);
/* Make up for what was taken of those that are kept ready: IL_API_WARM, and one
 * that has imported what is wanted (preload.h). */
void warm_refill(struct pool *pool);
/* What a cell imports that is started for this one: nothing where somebody
 * waits for it, and another one that has it is kept ready. */
uint32_t warm_imports(const struct pool *pool, const struct ticket *ticket);

#endif
