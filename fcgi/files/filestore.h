/* SPDX-License-Identifier: MIT */
#ifndef FILESTORE_H
#define FILESTORE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

/*
 * The files that clients upload and that runs leave: a folder with "<id>" and
 * "<id>.meta" for each, ids being lower-case UUIDs of version 4 and made here.
 * A file is there when "<id>" is, and whole from then on.  Names are metadata
 * only.  Several processes may use one folder.
 *
 * What was not used for the TTL is gone, even before it is swept.  "Used" is
 * the time of the file's last change as the file system has it.  A writer holds
 * a lock on what it writes, so that a sweep knows what dead ones left.
 */
#define FILESTORE_ID_LEN 36
#define FILESTORE_NAME_MAX 16384
#define FILESTORE_NODE_LEN 6
#define FILESTORE_OWNER_LEN 32
/* What a contract notes of a file beside its name, A-Z a-z 0-9 _ -, or "": it
 * is kept, and means nothing here. */
#define FILESTORE_NOTE_MAX 64
/* A sender may have a part of the quota, and of the files: one of so many. */
#define FILESTORE_SHARE 4

struct filestore_limits {
	int64_t ttl_ms;
	int64_t quota;	   /* bytes of all files */
	int64_t count_max; /* files */
};

struct filestore {
	int dir;
	struct filestore_limits limits;
	struct filestore_usage
	    *usage;  /* shared by the processes forked later */
	int lock;    /* and so is this: what is used is about to change */
	int at_work; /* this process's changes under way */
	/* FILESTORE_OWNER_LEN bytes of the caller's: whose the files are that
	 * are made, and whose are there.  Zeros: those that are nobody's; NULL:
	 * all of them. */
	const unsigned char *owner;
	/* As many: who sends the files that are made, whose share they count
	 * against.  NULL: their owner does. */
	const unsigned char *sender;
	/* FILESTORE_NODE_LEN digits in which the ids that are made end; NULL:
	 * in any. */
	const char *node;
	/* Have so many bytes of the disk kept for what is written next: a
	 * descriptor for as long as they are, which ends by itself when whoever
	 * keeps them is gone; -1, with ERR_LIMIT when there is no room.  NULL:
	 * nobody is asked. */
	int (*keep_space)(void *arg, int64_t bytes, struct err *err);
	void *keep_arg;
};

/* Make the folder if it is missing.  It is open for as long as the process
 * lives. */
int filestore_open(struct filestore *store, const char *path,
    const struct filestore_limits *limits, struct err *err);

/* What is taken: bytes and number of the files, those that come included. */
void filestore_usage(const struct filestore *store, int64_t *bytes,
    int64_t *files);

/* ---- a file as it comes ---- */

struct filestore_new {
	struct filestore *store; /* NULL: there is none */
	int fd;
	int64_t size;
	struct buf piece; /* what is not written yet, nor counted */
	int space_fd;	  /* of keep_space(), -1: none yet */
	int64_t space;	  /* that it keeps for us */
	char id[FILESTORE_ID_LEN + 1]; /* stays when it has ended */
	/* to be set before commit, or left "" */
	char note[FILESTORE_NOTE_MAX + 1];
};

/* What is written is gathered: slices may be as small as they come.  ERR_LIMIT
 * from these, from commit too: the store, or the disk, is full;
 * ERR_QUOTA: its sender has its share of the store;
 * ERR_UNAVAILABLE: it cannot be known whether the disk has room.  After -1 from
 * begin there is nothing to abort; after -1 from write, abort. */
int filestore_begin(struct filestore *store, struct filestore_new *file,
    struct err *err);
int filestore_write(struct filestore_new *file, const void *data, size_t len,
    struct err *err);
/* Forget what was written. */
int filestore_restart(struct filestore_new *file, struct err *err);
/* Put it in its place; ends the file either way.  name: UTF-8, cut at
 * FILESTORE_NAME_MAX. */
int filestore_commit(struct filestore_new *file, const char *name,
    struct err *err);
/* It gets no place: a descriptor to read it by, from its beginning, with which
 * it ends.  The disk has room for it, but it counts for nobody any more.  -1:
 * as from commit; ends the file either way. */
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

/* Open for reading, which counts as use; a descriptor or -1 (ERR_NOT_FOUND for
 * whatever is not ours).  entry may be NULL; else its name is to be freed. */
int filestore_get(struct filestore *store, const char *id, size_t len,
    struct filestore_entry *entry, struct err *err);
int filestore_delete(struct filestore *store, const char *id, size_t len,
    struct err *err);
/* Each of them, in no order: open the folder, take one after the other (false:
 * there is no more), whose name is to be freed, closedir(). */
DIR *filestore_open_folder(const struct filestore *store, struct err *err);
bool filestore_next(const struct filestore *store, DIR *folder,
    struct filestore_entry *entry);
/* Remove what is past its time and what dead processes left.  When to sweep
 * again: wall clock milliseconds, -1: there is nothing. */
int64_t filestore_sweep(struct filestore *store);

#endif
