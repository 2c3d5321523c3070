/* SPDX-License-Identifier: MIT */
#ifndef PAUSE_H
#define PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "../protocol/frame.h"

/*
 * What failed starts of containers teach: an engine that is slow or broken is
 * not made better by more of them.  After one that failed there is a pause,
 * twice as long each time, and one start at a time until one succeeds.
 * Pure: the caller says what time it is.
 */
struct pause {
	int64_t most_ms;  /* the longest one; the first: PAUSE_FIRST_MS */
	int failures;	  /* in a row */
	int64_t until_ms; /* monotonic: no start before this */
	enum refusal code;
	char text[200]; /* of the last failure */
};

#define PAUSE_FIRST_MS 1000
#define PAUSE_MOST_MS 60000 /* where people wait for such a start */

void pause_note_failure(struct pause *pause, enum refusal code,
    const char *text, int64_t now_ms);
void pause_note_success(struct pause *pause);
/* May no start be begun now? */
bool pause_holds(const struct pause *pause, int64_t now_ms);
/* One failure may be chance: who waits is tried once more.  After two in a row
 * who would have to wait for the pause is told at once. */
bool pause_is_told(const struct pause *pause, int64_t now_ms);

#endif
