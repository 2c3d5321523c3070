/* SPDX-License-Identifier: MIT */
#ifndef OWNER_H
#define OWNER_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/* ---- users ---- */

/*
 * The users that code runs as: a user of the host for each sandbox, and for
 * each cell in memory.  The kernel counts pipes, descriptors under way, inotify
 * instances and waiting signals by user, so each sandbox has its own share.
 * The group has the same number.
 *
 * The numbers are of a range that systemd's table (UIDS-GIDS) leaves unused,
 * and above what sssd maps by itself.  A sandbox keeps its number for life: it
 * is the owner of the root folder in its volumes.  A counter,
 * IL_BASE_DIR/.uids, gives no number twice; it begins somewhere at random, so
 * that two brokers of one host have different ones.
 */
#define UID_SANDBOX_FIRST 0x78000000U
#define UID_SANDBOX_LAST 0x7effffffU
#define UID_MEMORY_FIRST 0x7f000000U
#define UID_MEMORY_LAST 0x7ffcffffU
/* Of all sandboxes before 2026-11-22. */
#define UID_COMMON 65532U

struct uids {
	int fd;		   /* of .uids; the caller closes it */
	uint32_t next;	   /* the next sandbox's */
	uint32_t reserved; /* the first one that .uids does not cover */
	uint32_t memory;   /* the next cell's in memory */
};

int uids_open(struct uids *uids, int base, struct err *err);

/* A number that no sandbox has had.  Durable when it returns. */
int uids_take(struct uids *uids, uint32_t *uid, struct err *err);

/* The next cell's in memory; in time the numbers come again. */
uint32_t uids_take_for_memory(struct uids *uids);

/* Is it the number of one sandbox alone? */
bool uid_is_of_one_sandbox(uint32_t uid);
/* May a file in a volume belong to it? */
bool uid_is_sandboxs(uint32_t uid);

/* Bytes of a disk of that size that stay free, for nobody: a share of the disk,
 * within bounds. */
int64_t disk_floor(int64_t total);

/* ---- owners of files ---- */

/*
 * The owners of the files in an ext4 volume, read and changed in the volume
 * itself.  It is not mounted and no name in it is read, so its contents do no
 * harm.  Only volumes that workspace.c makes are understood; the superblock's
 * values and the checksum of each inode are checked.
 */

/* The owner of the root folder; 0: this is no such file system. */
uint32_t owner_of(int volume_fd);

/*
 * Make uid the owner, and the group, of all files that are a sandbox's
 * (uid_is_sandboxs()); root's files stay root's.  The volume must be in no use
 * and have been checked by e2fsck: a journal that was not replayed is
 * ERR_CONFLICT.
 *
 * The root folder comes last, when all others are on the disk: after an
 * interruption owner_of() still has the old owner, and it is done again.
 */
int owner_change(int volume_fd, uint32_t uid, struct err *err);

/* The volume comes from elsewhere: its root folder is UID_COMMON's from now on,
 * so that the broker gives all of it to a user of this host before it is
 * mounted.  A journal need not have been replayed. */
int owner_disown(int volume_fd, struct err *err);

#endif
