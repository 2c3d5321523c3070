#ifndef TURN_H
#define TURN_H

#include <stdbool.h>
#include <time.h>

/*
 * Who writes next.  SQLite has one writer; who finds it busy sleeps, longer
 * each time, and whoever comes at the right moment goes first.  So all who
 * write take this lock before: it is flock(2) on a file beside the database,
 * the kernel wakes who waits for it, and it goes with its holder's process.
 * Nothing depends on it but the order: an operator's shell does without.
 */
struct turn {
	int fd; /* -1: there is no such file, everybody goes */
	bool held;
	timer_t timer;
};

/* Open "<database>-turn"; on failure turns are not taken. */
void turn_open(struct turn *turn, const char *database);
void turn_close(struct turn *turn);
/* Wait for it for so long.  False: it did not come. */
bool turn_take(struct turn *turn, int timeout_ms);
void turn_give(struct turn *turn);

#endif
