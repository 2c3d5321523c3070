/* SPDX-License-Identifier: MIT */
#ifndef UID_H
#define UID_H

#include <stdbool.h>
#include <stdint.h>

struct err;

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

#endif
