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

/* Attach the volume: volume_fd, which must be locked. */
int attachment_attach(struct attachment *a, struct err *err);
/* Reserve a free device, with nothing in it, for its number. */
int attachment_reserve(struct attachment *a, struct err *err);
/* Attach the volume, as above, to the device that was reserved for it. */
int attachment_replace(struct attachment *a, struct err *err);
/* Close the device, keep the lock. */
void attachment_detach(struct attachment *a);
/* Close device and volume.  A mounted device stays until it is unmounted. */
void attachment_release(struct attachment *a);

/* ---- the lock ---- */

/*
 * Wait for flock(LOCK_EX) on an open file without blocking the loop. flock(2)
 * cannot be polled, so a child that shares the open file waits in it.  The lock
 * that it gets belongs to the open file, so the broker has it, too.
 */
typedef void (*lock_wait_fn)(void *arg, const struct err *failure);

struct lock_wait {
	struct loop *loop;
	int fd; /* borrowed */
	pid_t child;
	int child_fd; /* its pidfd; -1: no wait */
	struct loop_timer *deadline;
	lock_wait_fn done;
	void *arg;
};

void lock_wait_init(struct lock_wait *w, struct loop *loop);
/* Begin to wait. done is called once, now or later, with NULL when the file is
 * locked, or with the failure. ms < 0: without a limit. */
void lock_wait_start(struct lock_wait *w, int fd, int ms, lock_wait_fn done,
    void *arg);
bool lock_wait_is_on(const struct lock_wait *w);
/* End the wait; safe when there is none. */
void lock_wait_stop(struct lock_wait *w);

#endif
