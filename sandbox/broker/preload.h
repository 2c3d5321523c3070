/* SPDX-License-Identifier: MIT */
#ifndef BROKER_PRELOAD_H
#define BROKER_PRELOAD_H

#include <stdint.h>

#include "../base/preload.h"

struct config;

/*
 * Which modules the cell that is kept ready for them shall have imported: all
 * that IL_PRELOAD names, or with "auto" those that two leases have asked for in
 * the last IL_WARM_SECONDS.  Masks are those of base/preload.h.
 */
struct preload {
	int64_t asked_ms[PRELOAD_BITS][2]; /* the last time, the one before;
					      monotonic, 0: never */
	int64_t absent_ms[PRELOAD_BITS];   /* until then: no cell could */
};

/* A lease is asked for, by a program that looks as if it imports these. */
void preload_note(struct preload *p, uint32_t mask, int64_t now_ms);
/* A cell has come up that was to import them, and these it could not: a package
 * that is not in the image may be installed later.  What the image lacks is
 * tried again after ten minutes. */
void preload_note_absent(struct preload *p, uint32_t mask, int64_t now_ms);
uint32_t preload_wanted(const struct preload *p, const struct config *config,
    int64_t now_ms);

#endif
