#ifndef ATTACHMENT_H
#define ATTACHMENT_H

#include <stdbool.h>

#include "lock_wait.h"

struct err;
struct loop;

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
typedef void (*attachment_fn)(void *arg, const struct err *failure);

struct attachment {
	int volume_fd;	       /* -1: none */
	int device_fd;	       /* open until the container has mounted it */
	int device;	       /* N of /dev/loopN, -1: none */
	struct lock_wait wait; /* for an old holder */
	attachment_fn done;
	void *arg;
};

void attachment_init(struct attachment *a, struct loop *loop);

/*
 * Lock the volume and attach it.  volume_fd becomes ours.  When an older holder
 * still has it, waits for it beside the loop, at most wait_ms.  done is called
 * once: now or later, with NULL or the failure.
 */
void attachment_start(struct attachment *a, int volume_fd, int wait_ms,
    attachment_fn done, void *arg);

/* Give up the device, keep the lock; and attach the volume anew. */
void attachment_detach(struct attachment *a);
int attachment_attach(struct attachment *a, struct err *err);

/* Let go of all.  A mounted device lives on by itself until it is unmounted. */
void attachment_release(struct attachment *a);

#endif
