/* SPDX-License-Identifier: MIT */
#ifndef ATTACHMENT_H
#define ATTACHMENT_H

struct err;

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
/* Give up the device, keep the lock. */
void attachment_detach(struct attachment *a);
/* Let go of all.  A mounted device lives on by itself until it is unmounted. */
void attachment_release(struct attachment *a);

#endif
