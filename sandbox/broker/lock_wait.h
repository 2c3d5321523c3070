/* SPDX-License-Identifier: MIT */
#ifndef LOCK_WAIT_H
#define LOCK_WAIT_H

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct loop;
struct loop_timer;

/*
 * Wait beside the loop for flock(LOCK_EX) on an open file.  flock(2) cannot be
 * polled, so a child that shares the open file waits in it: the lock that it
 * gets is the open file's, hence ours too.
 */
typedef void (*lock_wait_fn)(void *arg, const struct err *failure);

struct lock_wait {
	struct loop *loop;
	int fd; /* borrowed */
	pid_t child;
	int child_fd; /* its pidfd; -1: nothing is waited for */
	struct loop_timer *deadline;
	lock_wait_fn done;
	void *arg;
};

void lock_wait_init(struct lock_wait *w, struct loop *loop);
/* done is called once, now or later: NULL when we have the lock, else why not.
 * ms < 0: however long it takes. */
void lock_wait_start(struct lock_wait *w, int fd, int ms, lock_wait_fn done,
    void *arg);
bool lock_wait_is_on(const struct lock_wait *w);
/* No longer; safe when there is nothing. */
void lock_wait_stop(struct lock_wait *w);

#endif
