/* SPDX-License-Identifier: MIT */
#ifndef WARM_H
#define WARM_H

#include <stdbool.h>

struct pool;
struct ticket;

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
/* Make up for what was taken of those that are kept ready: IL_API_WARM, and one
 * that has imported what IL_PRELOAD names. */
void warm_refill(struct pool *pool);
/* Does a cell that is started for this one import that?  Not where somebody
 * waits for it, and another one that has it is kept ready. */
bool warm_imports(const struct pool *pool, const struct ticket *ticket);

#endif
