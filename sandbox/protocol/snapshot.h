/* SPDX-License-Identifier: MIT */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct config;
struct err;
struct pollfd;

/*
 * What is asked of il-snapshot, which saves sandboxes to where another host
 * finds them (IL_SNAPSHOTS).  Its sockets, below IL_STATE_DIR, are in the
 * folders that these programs alone may enter (lease.h).
 */
#define SNAPSHOT_STATE_FILE "snapshot-" INLINE_VERSION
#define SNAPSHOT_LOCK_FILE "snapshot.lock"
/* In a folder that is IL_SNAPSHOTS. */
#define SNAPSHOT_MARK ".inline-snapshots"
#define SOCKET_SNAPSHOT_WORKER "broker/worker/snapshot.sock" /* il-worker */
#define SOCKET_SNAPSHOT_CTL "broker/ctl/snapshot.sock"	     /* ilctl */
#define SOCKET_SNAPSHOT_API "broker/api/snapshot.sock"	     /* il-api */

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
 * Files of the HTTP APIs.  Where there are several hosts (IL_NODES),
 * il-snapshot keeps a copy of each (IL_API_FILES) as well, with what il-api
 * notes of it, for IL_API_FILES_SECONDS after its last use as the copy knows
 * it.  Whoever asks may be told of any: whose it is stands in the note.
 */
#define SNAPSHOT_FILE_LEN 36	      /* of an id (text_is_uuid()) */
#define SNAPSHOT_FILE_MAX (100 << 20) /* bytes of a file */
#define SNAPSHOT_NOTE_MAX 16640	      /* bytes of a note */

struct snapshot_copy {
	int fd;
	int64_t size; /* of the file */
	int64_t left; /* bytes of it that have not come */
	size_t note_len;
	char note[SNAPSHOT_NOTE_MAX + 1];
	unsigned char *packet; /* heap */
};

/* Ask for the copy of a file: 0, and its bytes come by snapshot_copy_next(); 1:
 * there is none, or its time is over; -1, and of err->code: ERR_INPUT: it is
 * damaged; ERR_TIMEOUT: after wait_ms, or *unless has happened (fd.h); others:
 * it may be tried again.  Release it in any case. */
int snapshot_copy_open(struct snapshot_copy *copy, const struct config *config,
    const char *id, const struct pollfd *unless, int wait_ms, struct err *err);
/* Its next bytes, until the next call: how many; 0: that was all.  -1 as above,
 * of a copy that was damaged after it had begun, too. */
ssize_t snapshot_copy_next(struct snapshot_copy *copy,
    const struct pollfd *unless, int wait_ms, const unsigned char **data,
    struct err *err);
void snapshot_copy_release(struct snapshot_copy *copy);

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
	_Atomic int64_t files;		  /* of the HTTP APIs: copied */
	_Atomic int64_t files_failing_ms; /* none can be copied since */
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
