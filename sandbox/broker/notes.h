/* SPDX-License-Identifier: MIT */
#ifndef NOTES_H
#define NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/preload.h"
#include "protocol/frame.h"

/* Notes that the pool keeps, in memory. */

struct config;
struct container;

/* ---- of kept interpreters ---- */

/*
 * Cells that hold an interpreter for the next run of their sandbox, as they say
 * themselves when a lease is over; only where the client had asked for it.
 * Such a cell serves its sandbox like any other.  It stays for
 * IL_SESSION_SECONDS of rest, and there are IL_SESSIONS of them at most; the
 * one used longest ago goes first (scheduler.c).
 *
 * The reason why one has ended is remembered until its owner comes.  A sandbox
 * without a note has had none in this life of the broker's.
 */
struct kept_note {
	TAILQ_ENTRY(kept_note) link;
	char sandbox[33];
	enum kept_end why;
};

struct kept_notes {
	TAILQ_HEAD(kept_list, kept_note) list; /* the oldest first */
	size_t count;
};

void kept_release(struct kept_notes *notes);

/* End an idle cell; why, if it holds an interpreter. */
void kept_end(struct container *c, enum kept_end why);
/* A cell is on its way out: note what ended with it, once. */
void kept_settle(struct kept_notes *notes, struct container *c);
/* Returns why the last one of the sandbox has ended, and forgets it. */
enum kept_end kept_recall(struct kept_notes *notes, const char *sandbox);

/* Does c end before the other, where one of two idle cells must?  A cell that
 * keeps nothing goes first, then the one at rest for longer.  other: NULL is
 * none. */
bool kept_goes_before(const struct container *c, const struct container *other);

/* ---- of starts that failed ---- */

/*
 * Failed starts of containers: an engine that is slow or broken is not made
 * better by more of them.  After one that failed there is a pause, twice as
 * long each time, and one start at a time until one succeeds.  Pure: the caller
 * says what time it is.
 */
struct pause {
	int64_t most_ms;  /* the longest one; the first: PAUSE_FIRST_MS */
	int failures;	  /* in a row */
	int64_t until_ms; /* monotonic: no start before this */
	enum refusal code;
	char text[200]; /* of the last failure */
};

#define PAUSE_FIRST_MS 1000
#define PAUSE_MOST_MS 60000    /* where people wait for such a start */
#define PAUSE_MOUNTS_MS 600000 /* where cells start as ever meanwhile */

void pause_note_failure(struct pause *pause, enum refusal code,
    const char *text, int64_t now_ms);
void pause_note_success(struct pause *pause);
/* May no start be begun now? */
bool pause_holds(const struct pause *pause, int64_t now_ms);
/* One failure may be chance: a client that waits is tried once more.  After two
 * in a row a client that would have to wait for the pause is told at once. */
bool pause_is_told(const struct pause *pause, int64_t now_ms);

/* ---- of modules that runs import ---- */

/*
 * The modules that the cell kept ready for them shall have imported: all that
 * IL_PRELOAD names, or with "auto" those that two leases have asked for in the
 * last IL_WARM_SECONDS.  Masks are those of base/preload.h.
 */
struct preload {
	int64_t asked_ms[PRELOAD_BITS][2]; /* the last time, the one before;
					      monotonic, 0: never */
	int64_t absent_ms[PRELOAD_BITS];   /* until then: no cell could */
};

/* A lease is asked for, by a program that looks as if it imports these. */
void preload_note(struct preload *p, uint32_t mask, int64_t now_ms);
/* A cell has come up that was to import them, and these it could not: a package
 * that is not in the image may be installed later.  A module that the image
 * lacks is tried again after ten minutes. */
void preload_note_absent(struct preload *p, uint32_t mask, int64_t now_ms);
uint32_t preload_wanted(const struct preload *p, const struct config *config,
    int64_t now_ms);

#endif
