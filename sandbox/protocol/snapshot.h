/* SPDX-License-Identifier: MIT */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct config;
struct err;

/*
 * What is asked of il-snapshot, which saves sandboxes to where another host
 * finds them (IL_SNAPSHOTS).  Its sockets, below IL_STATE_DIR, are in the
 * folders that these programs alone may enter (lease.h).
 */
#define SOCKET_SNAPSHOT_WORKER "broker/worker/snapshot.sock" /* il-worker */
#define SOCKET_SNAPSHOT_CTL "broker/ctl/snapshot.sock"	     /* ilctl */

/*
 * Make the sandbox `to` of the last snapshot of `from`, which may be another
 * host's: ids of 32 small hex digits.  It is there whole or not at all, and its
 * files are given to a user of this host at its first lease.  To ask again is
 * harmless: what was restored already is told again.
 *
 * 0: *time_ms (Unix) is what it is of.  1: there is no snapshot.  -1, and of
 * err->code: ERR_INPUT: it is damaged, or another sandbox's, and will be so the
 * next time; ERR_CONFLICT: there is a sandbox `to` that was not made of it;
 * ERR_LIMIT: the disk has no room; others: it may be tried again.
 */
int snapshot_restore(const struct config *config, const char *from,
    const char *to, int wait_ms, int64_t *time_ms, struct err *err);

/* Remove all snapshots of a sandbox that is gone for good.  Call it when its
 * volumes are removed, and before it is forgotten that there was one: until 0
 * it has to be tried again.  0 also where IL_SNAPSHOTS is empty.  ctl: by
 * ilctl, not il-worker.  before: the id of which it was never restored, or "".
 */
int snapshot_forget(const struct config *config, bool ctl, const char *id,
    const char *before, int wait_ms, struct err *err);

/*
 * How it is, for everybody who may enter IL_STATE_DIR: a file that il-snapshot
 * maps, STATE/snapshot-VERSION.  Times are Unix milliseconds, 0: none.
 */
struct snapshot_state {
	_Atomic int64_t told_ms;    /* it was alive then */
	_Atomic int64_t sandboxes;  /* that are there */
	_Atomic int64_t waiting;    /* to be saved */
	_Atomic int64_t oldest_ms;  /* the first of these was free */
	_Atomic int64_t failing_ms; /* nothing can be saved since */
	_Atomic int64_t saved;	    /* from here on: since the host's boot */
	_Atomic int64_t bytes;	    /* written, compressed */
	_Atomic int64_t failures;
	_Atomic int64_t restored;
	_Atomic int64_t forgotten;
};
/* After so long without a word it is dead. */
#define SNAPSHOT_SILENCE_MS 60000

/* il-snapshot's own; and to look at, NULL: it has never been started.  Until
 * the end of the process, or snapshot_state_close(). */
struct snapshot_state *snapshot_state_open(const struct config *config,
    struct err *err);
const struct snapshot_state *snapshot_state_read(const struct config *config,
    struct err *err);
void snapshot_state_close(const struct snapshot_state *state);
/* Append it as Prometheus reads it. */
void snapshot_state_tell(struct buf *out, const struct snapshot_state *state,
    int64_t now_ms);

#endif
