/* SPDX-License-Identifier: MIT */
#ifndef TASK_H
#define TASK_H

#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;
struct store;

/*
 * What is done for one sandbox, each in a process of its own that may take its
 * time and may be killed at any moment.  Names of sandboxes were checked.
 */
#define TASK_ID_LEN 32
#define TASK_ID_SIZE (TASK_ID_LEN + 1)
/* A draft of a sandbox that is being restored, in IL_BASE_DIR. */
#define TASK_DRAFT_PREFIX ".restore-"
/* In a sandbox that was restored: of which one, and of when. */
#define TASK_MARK "restored"
#define TASK_MARK_MAX 64

/* Read the mark in a sandbox's folder.  False: it has none. */
bool task_read_mark(int folder, char from[TASK_ID_SIZE], int64_t *seconds);

bool task_is_id(const char *id);

struct saving {
	struct store *store;
	int base;   /* IL_BASE_DIR */
	bool sweep; /* an earlier one may have left blocks that nobody needs */
	bool saved; /* result: there is a new snapshot, not just the last */
	int64_t bytes; /* written, compressed */
};

/*
 * Save what has changed of a sandbox since its last snapshot.  Each volume is
 * read under its lock, in rounds that are short, so that who wants to mount it
 * waits for one round at most.  ERR_BUSY: it is mounted, or was meanwhile;
 * ERR_NOT_FOUND: it is gone.
 */
int save_sandbox(struct saving *s, const char *id, struct err *err);

/* snapshot_restore() of ../protocol/snapshot.h; 0, 1 or -1.  *seconds: what it
 * is of. */
int restore_sandbox(struct store *store, int base, const char *from,
    const char *to, int64_t *seconds, struct err *err);
/* Remove the drafts of those that were killed. */
void restore_sweep(int base);

int forget_sandbox(struct store *store, const char *id, struct err *err);

/* Remove the objects of a sandbox, but for its manifest and the blocks that it
 * needs; NULL: all. */
struct manifest;
int sweep_sandbox(struct store *store, const char *id,
    const struct manifest *needed, struct err *err);

#endif
