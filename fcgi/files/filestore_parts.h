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

/* ---- what is used, by all processes together: filestore_usage.c ---- */

/* More than a store has files, so that there is a row for each sender who has
 * one.  Memory that is not used costs nothing. */
#define FILESTORE_OWNERS (1 << 17)
/* The first digits of an id are its sender's tag, if there is one.  So the
 * sender is known without opening the file.  90 bits are left that nobody can
 * guess. */
#define FILESTORE_TAG_LEN 8

/* A sender's row: its tag, without a NUL, and what it has.  Files that come are
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
	/* Senders who have made a file since the store was opened, so many. */
	_Atomic size_t owner_count;
	struct filestore_owned owners[]; /* the shared one: FILESTORE_OWNERS */
};

/* Are the files that are made somebody's? */
bool filestore_is_owned(const struct filestore *store);
/* The sender's tag, "" of nobody. */
void filestore_tag(const struct filestore *store,
    char tag[FILESTORE_TAG_LEN + 1]);

enum filestore_lock {
	FILESTORE_LOCK_CHANGES, /* shared by who changes something */
	FILESTORE_LOCK_OWNERS,	/* shared by who removes data */
};

/* A lock that this process has: F_RDLCK is shared, F_WRLCK is not, F_UNLCK lets
 * it go.  False: it is not to be had; with `wait`, that is waited for. */
bool filestore_lock(struct filestore *store, enum filestore_lock which,
    short type, bool wait);
/* Around whatever changes both the folder and the count of it: of a file that
 * comes, all steps from the first to the last.  Calls nest.  Several processes
 * may be between the two at one time; a new count waits for none of them, and
 * is only made when there is none. */
void filestore_enter(struct filestore *store);
void filestore_leave(struct filestore *store);

/* Count bytes and files, less than 0 of what goes.  id: the file's, or its
 * sender's tag; "" for nobody's. */
void filestore_count(struct filestore_usage *usage, const char *id,
    int64_t bytes, int64_t files);
/* Count them if they fit; ERR_LIMIT: they do not.  ERR_QUOTA: the sender would
 * have more than its share. */
int filestore_reserve(struct filestore *store, const char *id, int64_t bytes,
    int64_t files, struct err *err);
/* The store's sender is among those that are counted; the first time the folder
 * is read for that.  After filestore_enter(). */
int filestore_add_owner(struct filestore *store, struct err *err);
/* Remove the data of a file and count that, beside owners who are being added;
 * -1: errno. */
int filestore_unlink(struct filestore *store, const char *name, const char *id,
    int64_t bytes);

#endif
