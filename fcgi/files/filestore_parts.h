/* SPDX-License-Identifier: MIT */
#ifndef FILESTORE_PARTS_H
#define FILESTORE_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "files/filestore.h"

/*
 * Functions that the parts of the store share, in its folder only.
 */

/* ---- names and the folder: filestore_folder.c ---- */

/* The id, if it is a name of data, new or in its place; else NULL. */
const char *filestore_data_id(const char *name);
/* A regular file by that name, as it is now. */
bool filestore_stat(const struct filestore *store, const char *name,
    struct stat *st);

/* ---- usage, of all processes together: filestore_usage.c ---- */

/* There are more rows than a store has files, so each sender with a file has
 * one.  Unused memory costs nothing. */
#define FILESTORE_OWNERS (1 << 17)
/* The first digits of an id are its sender's tag, if there is one.  So the
 * sender is known without opening the file.  90 bits are left that nobody can
 * guess. */
#define FILESTORE_TAG_LEN 8

/* A sender's row: its tag, without a NUL, and its usage, incoming files
 * included. */
struct filestore_owned {
	char tag[FILESTORE_TAG_LEN];
	_Atomic int64_t bytes;
	_Atomic int64_t files;
};

struct filestore_usage {
	_Atomic int64_t bytes;
	_Atomic int64_t files;
	_Atomic int64_t due_ms; /* wall clock: nothing ends before */
	_Atomic int64_t
	    room_again_ms; /* monotonic: not swept for room before */
	/* Number of senders who have made a file since the store was opened. */
	_Atomic size_t owner_count;
	struct filestore_owned owners[]; /* the shared one: FILESTORE_OWNERS */
};

/* Do new files have an owner? */
bool filestore_is_owned(const struct filestore *store);
/* The sender's tag; "": no sender. */
void filestore_tag(const struct filestore *store,
    char tag[FILESTORE_TAG_LEN + 1]);

enum filestore_lock {
	FILESTORE_LOCK_CHANGES, /* shared by writers and removers */
	FILESTORE_LOCK_OWNERS,	/* shared by removers of data */
};

/* Set this process's lock: F_RDLCK is shared, F_WRLCK is not, F_UNLCK unlocks.
 * False: another process has it; with `wait` the call waits for it instead. */
bool filestore_lock(struct filestore *store, enum filestore_lock which,
    short type, bool wait);
/* Enclose each change of both the folder and its count; for an incoming file,
 * all steps from the first to the last.  Calls nest.  Several processes may be
 * between the two calls at one time.  A sweep counts anew only when none is,
 * and does not wait for that. */
void filestore_enter(struct filestore *store);
void filestore_leave(struct filestore *store);

/* Count bytes and files, negative ones for a removal.  id: the file's, or its
 * sender's tag; "": no sender. */
void filestore_count(struct filestore_usage *usage, const char *id,
    int64_t bytes, int64_t files);
/* Count bytes and files if they fit.  ERR_LIMIT: they do not; ERR_QUOTA: the
 * sender would have more than its share. */
int filestore_reserve(struct filestore *store, const char *id, int64_t bytes,
    int64_t files, struct err *err);
/* Give the store's sender a row, if it has none: the folder is read for it.
 * Call after filestore_enter(). */
int filestore_add_owner(struct filestore *store, struct err *err);
/* Remove the data of a file and count that.  Senders may be added meanwhile.
 * -1: errno. */
int filestore_unlink(struct filestore *store, const char *name, const char *id,
    int64_t bytes);

#endif
