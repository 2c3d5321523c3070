/* SPDX-License-Identifier: MIT */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

struct db;
struct err;

/*
 * The row of a user's sandbox.  The folder on disk belongs to the broker; which
 * sandboxes there are, whose they are and when they expire is said here alone.
 *
 *	active → expiring (sweeper, `ilctl expire`) → expired (folder is gone)
 *	active → removing (/il delete)              → row is deleted
 *
 * An expired row stays so that its owner is told; /il create replaces it with a
 * new one (new id).  Times are Unix seconds.
 */
#define SANDBOX_ID_LEN 32

enum sandbox_state {
	SANDBOX_ACTIVE,
	SANDBOX_EXPIRING,
	SANDBOX_EXPIRED,
	SANDBOX_REMOVING,
};

struct sandbox {
	char id[SANDBOX_ID_LEN + 1]; /* lower-case hex, random */
	int64_t user_id;
	enum sandbox_state state;
	char cwd[1025]; /* "" is the workspace itself */
	int64_t used_at;
	int64_t expires_at;
	bool pinned; /* never expires */
	int64_t used_bytes;
	int64_t used_files;
	int64_t named_files; /* when its names were kept; -1: they are not those
			      * of now (names.h) */
};

/* Their names, in the database and for people. */
extern const char *const sandbox_states[];

/* The active one, otherwise the newest that expires or has expired; one that is
 * being removed is not found.  1: the user has none. */
int sandbox_find(struct db *db, int64_t user_id, struct sandbox *sandbox,
    struct err *err);
/* Make the user's row (a fresh random id), or take the active one that is
 * there.  *created says which. */
int sandbox_create(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct sandbox *sandbox, bool *created, struct err *err);
/* The user's active one is not to be used any more once its time is over: its
 * files are the sweeper's, and a new one can be made.  1: there is none of that
 * kind, or something is just being done in it. */
int sandbox_give_up(struct db *db, int64_t user_id, struct err *err);
/* Active, and its time is not over. */
bool sandbox_is_usable(const struct sandbox *sandbox);
/* These return 1 when the sandbox is not active (any more).
 * It was used now: used_at, and expires_at = now + retention, but never earlier
 * than an operator has set it. */
int sandbox_touch(struct db *db, const char *id, int64_t retention_seconds,
    struct err *err);
int sandbox_set_cwd(struct db *db, const char *id, const char *cwd,
    struct err *err);
/* renamed: the names in it are not those that are kept. */
int sandbox_set_usage(struct db *db, const char *id, int64_t bytes,
    int64_t files, bool renamed, struct err *err);

/* Take one that has expired (active, not pinned, expires_at <= now, no
 * unfinished job of its user) or that was left expiring or removing: marks an
 * active one expiring.  The same row is not given again for 60 s, so that two
 * sweepers do not meet and a folder that cannot be removed now is tried again
 * later.  1: there is none. */
int sandbox_take_expired(struct db *db, struct sandbox *sandbox,
    struct err *err);
/* Make those that were left expiring or removing due at once; returns how
 * many. */
int sandbox_retry(struct db *db, struct err *err);
/* Its folder is gone, and its names go: expiring → expired, removing → row
 * deleted (the expired row too when its user has a new sandbox).  1: it was
 * neither. */
int sandbox_gone(struct db *db, const char *id, struct err *err);
/* active → removing.  1: it is not active any more. */
int sandbox_remove(struct db *db, const char *id, struct err *err);

struct sandbox_counts {
	int64_t active;
	int64_t overdue; /* of those: over their time, and not pinned */
	int64_t expiring;
	int64_t removing;
};
int sandbox_count(struct db *db, struct sandbox_counts *counts,
    struct err *err);

/* Seconds (at least 1, so that it can be slept) until the next active, unpinned
 * one expires; -1: none, or an error: err->code says which. */
int64_t sandbox_next_expiry(struct db *db, struct err *err);

#endif
