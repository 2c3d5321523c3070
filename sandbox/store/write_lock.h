/* SPDX-License-Identifier: MIT */
#ifndef WRITE_LOCK_H
#define WRITE_LOCK_H

#include <stdbool.h>
#include <time.h>

/*
 * Who writes next.  SQLite has one writer; who finds it busy sleeps, longer
 * each time, and whoever comes at the right moment goes first.  So all who
 * write take this lock before: it is flock(2) on a file beside the database,
 * the kernel wakes who waits for it, and it goes with its holder's process.
 * Nothing depends on it but the order: an operator's shell does without.
 */
struct write_lock {
	int fd; /* -1: there is no such file, everybody goes */
	bool held;
	timer_t timer;
};

/* Open "<database>-turn"; on failure turns are not taken. */
void write_lock_open(struct write_lock *lock, const char *database);
void write_lock_close(struct write_lock *lock);
/* Wait for it for so long.  False: it did not come. */
bool write_lock_take(struct write_lock *lock, int timeout_ms);
void write_lock_give(struct write_lock *lock);

#endif
