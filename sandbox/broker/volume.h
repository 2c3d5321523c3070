/* SPDX-License-Identifier: MIT */
#ifndef VOLUME_H
#define VOLUME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "broker/host.h"

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
 * Wait for flock(LOCK_EX) on an open file without blocking the loop.  flock(2)
 * cannot be polled, so a child that shares the open file waits in it.  The lock
 * that it gets belongs to the open file, so the broker has it, too.
 */
typedef void (*lock_wait_fn)(void *arg, const struct err *failure);

struct lock_wait {
	struct loop *loop;
	int fd;	      /* borrowed */
	pid_t child;  /* 0: no wait is on */
	int child_fd; /* its pidfd */
	struct loop_timer *timer;
	lock_wait_fn done;
	void *arg;
};

/* Begin to wait; the wait is zeroed or over.  done is called once, now or
 * later, with NULL when the file is locked, or with the failure. ms < 0:
 * without a limit. */
void lock_wait_start(struct lock_wait *w, struct loop *loop, int fd, int ms,
    lock_wait_fn done, void *arg);
/* End the wait; safe when there is none. */
void lock_wait_stop(struct lock_wait *w);

/* ---- the ledger ---- */

/*
 * Reservations of disk space.  Sparse volumes together may grow larger than the
 * disk, and a write into one that finds no block damages the file system
 * inside.  So each writer has a reservation first, and one is only granted
 * while the disk has room for all of them and for a floor.
 *
 * Sizes are measured and never remembered.  A volume may still take its size
 * less its blocks; the file system says how much is free; both are read at the
 * moment of the question.  A write makes both smaller by as much, a discard
 * makes both larger, so a granted reservation stays good.  Each file system is
 * counted by itself.
 */
struct ledger {
	struct host *host;
	LIST_HEAD(reservation_list, reservation) all;
};

/* Reservation of a volume, while a container may have it mounted, or of a
 * number of bytes. */
struct reservation {
	LIST_ENTRY(reservation) link;
	struct ledger *ledger;
	int fd; /* the volume, or anything on the file system; owned */
	dev_t device;
	ino_t inode;   /* of the volume */
	int64_t bytes; /* besides the growth of a volume */
	bool grows;    /* the growth of the volume counts, too */
	bool leaving;  /* its container is gone; the mount may be there still */
	struct lock_wait wait;
};

/* Space of one file system, in bytes. */
struct ledger_space {
	dev_t device;
	int64_t free;
	int64_t floor;	  /* is never granted */
	int64_t reserved; /* sum of all reservations */
	int64_t leaving;  /* of that: reservations that are about to end */
};

/* Growth of a mounted volume without any file in it growing: its journal is
 * replayed after a power cut. */
#define LEDGER_MOUNT_BYTES (INT64_C(4) << 20)

/* A file system has a fixed number of inodes.  The last ones are for the
 * sandboxes that are there already. */
#define LEDGER_FILES 4096

/* ---- arithmetic ---- */

/* Returns the floor: 2 % of the file system, 256 MiB at least and 2 GiB at
 * most; more when the mounts of that many cells could need more. */
int64_t ledger_floor(int64_t total, int64_t cells);
/* Returns how much a sparse file can still grow, the host's metadata for it
 * included. */
int64_t ledger_growth(int64_t size, int64_t allocated);
/* Is there room for that many bytes more? */
bool ledger_has_room(const struct ledger_space *space, int64_t wanted);

/* ---- the table ---- */

void ledger_release(struct ledger *ledger);

/* Measure the file system that fd is on. */
int ledger_measure(const struct ledger *ledger, int fd,
    struct ledger_space *space, struct err *err);

/* Has the file system that fd is on inodes for new sandboxes? */
bool ledger_has_files(int fd);

/* Reserve bytes on the file system that fd is on, whether there is room or not:
 * ask first.  It owns fd.  NULL: fd is no file. */
struct reservation *reservation_of_bytes(struct ledger *ledger, int fd,
    int64_t bytes);
/* Reserve LEDGER_MOUNT_BYTES for a volume that is going to be mounted. */
struct reservation *reservation_of_volume(struct ledger *ledger, int fd);
/* Bytes of the reservation now; bytes that it would take more if its volume
 * might grow, 0 when it may already; bytes for a container that may write to
 * the volume. */
int64_t reservation_bytes(const struct reservation *r);
int64_t reservation_more(const struct reservation *r);
int64_t ledger_volume_bytes(int volume_fd);
/* At the start, reserve for volumes that containers of an earlier life may
 * still have mounted. */
void ledger_find(struct ledger *ledger);
/* Reserve for the request bodies that nginx writes, in the folder of `ilctl
 * run` or in Debian's. */
void ledger_add_spool(struct ledger *ledger);
/* `by` has the volume's lock now, so no older container has it mounted: end the
 * older reservations. */
void reservation_supersede(struct ledger *ledger, const struct reservation *by);
/* End the reservation at once; NULL is fine. */
void reservation_free(struct reservation *r);
/* Its container is dead, but the kernel may still write data back.  It counts
 * until the loop device has closed the volume.  NULL is fine. */
void reservation_leave(struct reservation *r);

#endif
