/* SPDX-License-Identifier: MIT */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "broker/host.h"
#include "broker/volume.h"

struct err;

/*
 * Who may still write how much, and where.  A sparse volume promises more than
 * the disk has, and a write into it that finds no block damages the file system
 * inside.  So whatever may write has a reservation here first, and one is only
 * given while the disk holds all of them and a floor beside it.
 *
 * Nothing is remembered that can be measured: what a volume may still take is
 * its size less the blocks that it has, what is free is what the file system
 * says, both at the moment of the question.  A write makes both smaller by as
 * much, a discard makes both larger: who was given room keeps it.  Each file
 * system is counted by itself.
 */
struct ledger {
	struct host *host;
	LIST_HEAD(reservation_list, reservation) all;
};

/* Of a volume, while a container may have it mounted; or of so many bytes. */
struct reservation {
	LIST_ENTRY(reservation) link;
	struct ledger *ledger;
	int fd; /* the volume, or a place on the file system; ours */
	dev_t device;
	ino_t inode;   /* of the volume */
	int64_t bytes; /* besides what a volume grows by */
	bool grows;    /* all that the volume may grow counts */
	bool leaving;  /* its container is gone, the mount may not be */
	struct lock_wait wait;
};

/* What is so on one file system, in bytes. */
struct ledger_space {
	dev_t device;
	int64_t free;
	int64_t floor;	  /* is never promised to anybody */
	int64_t promised; /* to all reservations */
	int64_t leaving;  /* of that: to those that are about to end */
};

/* What a mounted volume may take on the disk without any file in it growing:
 * its journal is replayed after a power cut. */
#define LEDGER_MOUNT_BYTES (INT64_C(4) << 20)

/* A file system has so many files, and no more however large it is: the last of
 * them are for those that are there already. */
#define LEDGER_FILES 4096

/* ---- arithmetic ---- */

/* 256 MiB, or 2 % of a larger file system up to 2 GiB; more when so many cells
 * could need more for their mounts. */
int64_t ledger_floor(int64_t total, int64_t cells);
/* By how much a sparse file can still grow, the host's own notes about where
 * its pieces are included. */
int64_t ledger_growth(int64_t size, int64_t allocated);
/* Is there room for so much more? */
bool ledger_has_room(const struct ledger_space *space, int64_t wanted);

/* ---- the table ---- */

void ledger_release(struct ledger *ledger);

/* Ask for the file system that fd is on. */
int ledger_look(const struct ledger *ledger, int fd, struct ledger_space *space,
    struct err *err);

/* May new files be made where fd is? */
bool ledger_has_files(int fd);

/* A reservation of bytes, where fd is: NULL when there is no such file.  It
 * counts from now on, whether there is room or not: ask first.  fd is ours. */
struct reservation *reservation_of_bytes(struct ledger *ledger, int fd,
    int64_t bytes);
/* Of a volume that is going to be mounted, LEDGER_MOUNT_BYTES at first. */
struct reservation *reservation_of_volume(struct ledger *ledger, int fd);
/* What it takes now; how much more it would if its volume may grow, 0 when it
 * may already; what a container that may write to the volume would take. */
int64_t reservation_bytes(const struct reservation *r);
int64_t reservation_more(const struct reservation *r);
int64_t ledger_volume_bytes(int volume_fd);
/* At the start: whatever an earlier life has left mounted may still grow. */
void ledger_find(struct ledger *ledger);
/* What nginx may write of bodies, where it does: as `ilctl run` tells it, or
 * where Debian's does. */
void ledger_add_spool(struct ledger *ledger);
/* The lock of the volume is another's now: nobody before it has it mounted. */
void reservation_supersede(struct ledger *ledger, const struct reservation *by);
/* It is over at once; NULL is fine. */
void reservation_free(struct reservation *r);
/* Its container is dead.  The kernel may still be writing out what was written
 * before: it counts until the loop device has let go of the volume.  NULL is
 * fine. */
void reservation_leave(struct reservation *r);

#endif
