/* SPDX-License-Identifier: MIT */
#ifndef VOLUME_H
#define VOLUME_H

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct loop;
struct loop_timer;

/*
 * A volume, an ext4 file system in a file, on a loop device, for the engine to
 * mount.
 *
 * The volume carries flock(LOCK_EX) before the device is configured.  The lock
 * belongs to the open file, and the device holds that same open file until its
 * last user (the mount in the container, or our descriptor) is gone: a volume
 * that is locked is in use, one that is not is free, whatever was killed.
 * So no volume is ever mounted twice.
 */
struct attachment {
	int volume_fd; /* locked; -1: none */
	int device_fd; /* open until the container has mounted it */
	int device;    /* N of /dev/loopN, -1: none */
};

/* Attach the volume, which volume_fd is and whose lock we have. */
int attachment_attach(struct attachment *a, struct err *err);
/* Take a free device that holds nothing of anybody's, for its number. */
int attachment_hold(struct attachment *a, struct err *err);
/* Attach the volume, likewise, to the device that was held for it. */
int attachment_replace(struct attachment *a, struct err *err);
/* Give up the device, keep the lock. */
void attachment_detach(struct attachment *a);
/* Let go of all.  A mounted device lives on by itself until it is unmounted. */
void attachment_release(struct attachment *a);

/* ---- the lock ---- */

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
