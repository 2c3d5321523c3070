/* SPDX-License-Identifier: MIT */
#ifndef KEPT_H
#define KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../protocol/frame.h"

struct container;

/*
 * Cells that hold an interpreter for the next run of their sandbox, as they say
 * themselves when a lease is over; only where the client had asked for it.
 * Such a cell serves its sandbox like any other.  It stays for
 * IL_SESSION_SECONDS of rest, and there are IL_SESSIONS of them at most; the
 * one used longest ago goes first (warm.c).
 *
 * Why one has ended is remembered until its owner comes: here, in memory.  Who
 * is not remembered has had none in this life of the broker's.
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

void kept_init(struct kept_notes *notes);
void kept_release(struct kept_notes *notes);

/* End an idle cell; why, if it holds an interpreter. */
void kept_end(struct container *c, enum kept_end why);
/* A cell is on its way out: note what ended with it, once. */
void kept_settle(struct kept_notes *notes, struct container *c);
/* Why the last one of the sandbox has ended, which is then forgotten. */
enum kept_end kept_recall(struct kept_notes *notes, const char *sandbox);

/* Which of two idle cells ends first where there is need?  One that keeps
 * nothing, then one that has been at rest for longer; other: NULL is none. */
bool kept_goes_before(const struct container *c, const struct container *other);

/* How long an idle cell may stay. */
int64_t kept_rest_ms(const struct container *c);

#endif
