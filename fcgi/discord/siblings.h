/* SPDX-License-Identifier: MIT */
#ifndef SIBLINGS_H
#define SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the processes of il-fcgi know of each other, in memory that they share:
 * who has requests in hand, and the wake-ups that are held back.  In a batch
 * the workers wait until all are committed, or for a moment: what they start
 * then, containers at worst, takes the processors from it.  Any of them may be
 * killed at any moment.
 */
#define SIBLINGS_MAX 2 /* processors; the database has one writer at a time */
#define SIBLINGS_HOLD_MS 100

struct siblings {
	/* Since when there are requests in hand, 0: there are none. */
	_Atomic int64_t busy_ms[SIBLINGS_MAX];
	_Atomic size_t held;	 /* wake-ups */
	_Atomic int64_t held_ms; /* since when */
};

/* The index-th has a request in hand. */
void siblings_begin(struct siblings *s, size_t index, int64_t now_ms);
/* It has none any more; `jobs` are new.  more: it takes others at once.
 * Returns how many wake-ups are due: the caller makes them. */
size_t siblings_end(struct siblings *s, size_t index, size_t jobs, bool more,
    int64_t now_ms);
/* Is the index-th the only one that has a request in hand? */
bool siblings_alone(const struct siblings *s, size_t index, int64_t now_ms);
/* One of them is gone.  Returns how many wake-ups are due. */
size_t siblings_lost(struct siblings *s);

#endif
