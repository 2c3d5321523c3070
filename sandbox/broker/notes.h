/* SPDX-License-Identifier: MIT */
#ifndef NOTES_H
#define NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/preload.h"
#include "protocol/frame.h"

/* Notes of the pool, in memory. */

struct config;
struct container;

/* ---- sessions ---- */

/*
 * A session is an interpreter that a cell keeps for the next run of its
 * sandbox.  The cell reports it when a lease is over, and only where the client
 * had asked for it.  Such a cell serves its sandbox like any other.  It ends
 * after IL_SESSION_SECONDS without a lease.  There are IL_SESSIONS at most; the
 * one used longest ago is evicted first (scheduler.c).
 *
 * The reason why a session ended is remembered until its owner comes.  A
 * sandbox without a note had no session in this life of the broker.
 */
struct session_note {
	TAILQ_ENTRY(session_note) link;
	char sandbox[33];
	enum kept_end why;
};

struct session_notes {
	TAILQ_HEAD(session_note_list, session_note) list; /* oldest first */
	size_t count;
};

void session_notes_release(struct session_notes *notes);

/* End an idle cell; why: for its session, if it has one. */
void cell_end_idle(struct container *c, enum kept_end why);
/* A cell is ending: note the end of its session, once. */
void session_note_end(struct session_notes *notes, struct container *c);
/* Returns why the sandbox's last session ended, and forgets it. */
enum kept_end session_recall(struct session_notes *notes, const char *sandbox);

/* Is c evicted before the other, where one of two idle cells must end?  A cell
 * without a session goes first, then the one idle for longer. other: NULL is
 * none. */
bool is_evicted_before(const struct container *c,
    const struct container *other);

/* ---- failed starts ---- */

/*
 * Backoff after failed starts of containers: more starts do not help a slow or
 * broken engine.  After each failure the backoff doubles, and there is one
 * start at a time until one succeeds.  Pure: the caller passes the time.
 */
struct pause {
	int64_t most_ms;  /* the longest; the first is PAUSE_FIRST_MS */
	int failures;	  /* in a row */
	int64_t until_ms; /* monotonic: no start before this */
	enum refusal code;
	char text[200]; /* of the last failure */
};

#define PAUSE_FIRST_MS 1000
#define PAUSE_MOST_MS 60000    /* where people wait for the start */
#define PAUSE_MOUNTS_MS 600000 /* where cells start as usual meanwhile */

void pause_note_failure(struct pause *pause, enum refusal code,
    const char *text, int64_t now_ms);
void pause_note_success(struct pause *pause);
/* Is a start forbidden now? */
bool pause_holds(const struct pause *pause, int64_t now_ms);
/* One failure may be chance: a waiting client gets another try.  After two in a
 * row a client that would have to wait for the backoff is refused at once. */
bool pause_is_told(const struct pause *pause, int64_t now_ms);

/* ---- modules that runs import ---- */

/*
 * Modules that a warm cell shall have imported: all that IL_PRELOAD names, or
 * with "auto" the modules that two leases have asked for in the last
 * IL_WARM_SECONDS.  Masks are those of base/preload.h.
 */
struct preload {
	int64_t asked_ms[PRELOAD_BITS]
			[2]; /* the last two times; monotonic, 0: never */
	int64_t absent_ms[PRELOAD_BITS]; /* end of "missing in the image" */
};

/* A lease was requested for a program that seems to import these. */
void preload_note(struct preload *p, uint32_t mask, int64_t now_ms);
/* A cell could not import these modules.  They are tried again after ten
 * minutes, since the package may be installed later. */
void preload_note_absent(struct preload *p, uint32_t mask, int64_t now_ms);
uint32_t preload_wanted(const struct preload *p, const struct config *config,
    int64_t now_ms);

#endif
