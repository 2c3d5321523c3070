/* SPDX-License-Identifier: MIT */
#ifndef FILESTORE_H
#define FILESTORE_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/basics.h"

/*
 * The files that clients upload and that runs leave: a folder with "<id>" and
 * "<id>.meta" for each, ids being lower-case UUIDs of version 4 and made here.
 * A file is there when "<id>" is, and whole from then on.  Names are metadata
 * only.  Several processes may use one folder.
 *
 * A file that was not used for the TTL is gone, even before it is swept.
 * "Used" is the time of the file's last change in the file system.  A writer
 * holds a lock on its file, so a sweep knows which files dead writers left.
 */
#define FILESTORE_ID_LEN 36
#define FILESTORE_NAME_MAX 16384
#define FILESTORE_NODE_LEN 6
#define FILESTORE_OWNER_LEN 32
/* A contract's note beside the file's name, A-Z a-z 0-9 _ -, or "".  The store
 * keeps it and does not read it. */
#define FILESTORE_NOTE_MAX 64
/* A sender may have this fraction of the quota and of the number of files: one
 * of so many. */
#define FILESTORE_SHARE 4

struct filestore_limits {
	int64_t ttl_ms;
	int64_t quota;	   /* bytes of all files */
	int64_t count_max; /* files */
};

/* There are more rows than a store has files, so each sender with a file has
 * one.  Unused memory costs nothing. */
#define FILESTORE_OWNERS (1 << 17)
/* The first digits of an id are its sender's tag, if there is one.  So the
 * sender is known without opening the file.  90 bits are left that nobody can
 * guess. */
#define FILESTORE_TAG_LEN 8

/* Usage of the store, incoming files included, and that of each sender who has
 * made a file since the store was opened. */
struct filestore_usage {
	_Atomic int64_t bytes;
	_Atomic int64_t files;
	_Atomic int64_t due_ms;	       /* wall clock: nothing ends before */
	_Atomic int64_t room_again_ms; /* monotonic: no sweep for room before */
	_Atomic size_t owner_count;
	struct filestore_owned {
		char tag[FILESTORE_TAG_LEN]; /* without a NUL */
		_Atomic int64_t bytes;
		_Atomic int64_t files;
	} owners[]; /* the shared one: FILESTORE_OWNERS */
};

struct filestore {
	int dir;
	struct filestore_limits limits;
	/* Shared by the processes forked later, and so is the lock. */
	struct filestore_usage *usage;
	int lock;
	int at_work; /* this process's changes under way */
	/* FILESTORE_OWNER_LEN bytes of the caller's: the owner of new files,
	 * and the only one whose files are there.  Zeros: files without an
	 * owner; NULL: all files. */
	const unsigned char *owner;
	/* FILESTORE_OWNER_LEN bytes: the sender of new files, against whose
	 * share they count.  NULL: their owner. */
	const unsigned char *sender;
	/* FILESTORE_NODE_LEN digits in which new ids end; NULL: any digits. */
	const char *node;
	/* Reserve bytes of the disk for the next writes.  The descriptor holds
	 * them until it is closed, and ends by itself when the broker is
	 * gone.  -1 with ERR_LIMIT: there is no room.  NULL: no reservation is
	 * needed. */
	int (*keep_space)(void *arg, int64_t bytes, struct err *err);
	void *keep_arg;
};

/* Make the folder if it is missing.  It is open for as long as the process
 * lives. */
int filestore_open(struct filestore *store, const char *path,
    const struct filestore_limits *limits, struct err *err);

/* ---- a file as it comes ---- */

struct filestore_new {
	struct filestore *store; /* NULL: there is none */
	int fd;
	int64_t size;
	struct buf piece; /* bytes neither written nor counted yet */
	int space_fd;	  /* of keep_space(), -1: none yet */
	int64_t space;	  /* bytes that it reserves */
	char id[FILESTORE_ID_LEN + 1]; /* stays when the file has ended */
	/* set before commit, or left "" */
	char note[FILESTORE_NOTE_MAX + 1];
};

/* Writes are gathered: slices may be small.  Errors of these functions and of
 * commit:
 * ERR_LIMIT: the store, or the disk, is full;
 * ERR_QUOTA: the sender has used up its share of the store;
 * ERR_UNAVAILABLE: it is unknown whether the disk has room.
 * After -1 from begin there is nothing to abort; after -1 from write, abort. */
int filestore_begin(struct filestore *store, struct filestore_new *file,
    struct err *err);
int filestore_write(struct filestore_new *file, const void *data, size_t len,
    struct err *err);
/* Give the file its place in the store; it has ended either way.  name: UTF-8,
 * cut at FILESTORE_NAME_MAX. */
int filestore_commit(struct filestore_new *file, const char *name,
    struct err *err);
/* Give the file no place in the store.  The descriptor reads it from its
 * beginning, and the file ends with it.  The disk has room for it, but it
 * counts against no share any more.  -1: as from commit.  The new file has
 * ended either way. */
int filestore_detach(struct filestore_new *file, struct err *err);
/* Safe after commit, and twice. */
void filestore_abort(struct filestore_new *file);

/* ---- files that are there ---- */

struct filestore_entry {
	char id[FILESTORE_ID_LEN + 1];
	char *name; /* heap */
	int64_t size;
	int64_t uploaded_ms;			  /* wall clock */
	unsigned char owner[FILESTORE_OWNER_LEN]; /* zeros: nobody's */
	char note[FILESTORE_NOTE_MAX + 1];
};

/* Open for reading, which counts as use; a descriptor or -1 (ERR_NOT_FOUND also
 * for a file of another owner).  entry may be NULL; else its name is to be
 * freed. */
int filestore_get(struct filestore *store, const char *id, size_t len,
    struct filestore_entry *entry, struct err *err);
int filestore_delete(struct filestore *store, const char *id, size_t len,
    struct err *err);
/* All files, in no order: open the folder, get one file after the other (false:
 * there is no more) and free its name, closedir(). */
DIR *filestore_open_folder(const struct filestore *store, struct err *err);
bool filestore_next(const struct filestore *store, DIR *folder,
    struct filestore_entry *entry);
/* Remove files past their time and files that dead processes left.  Returns
 * when to sweep again: wall clock milliseconds, -1: there is nothing. */
int64_t filestore_sweep(struct filestore *store);

/* ---- between the two parts of the store only ---- */

/* The id, if it is a name of data, new or in its place; else NULL. */
const char *filestore_data_id(const char *name);
/* A regular file by that name, as it is now. */
bool filestore_stat(const struct filestore *store, const char *name,
    struct stat *st);
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
/* Remove the data of a file and count that; -1: errno. */
int filestore_unlink(struct filestore *store, const char *name, const char *id,
    int64_t bytes);

#endif
