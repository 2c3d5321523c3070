/* SPDX-License-Identifier: MIT */
#ifndef FILESTORE_PARTS_H
#define FILESTORE_PARTS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "filestore.h"

/*
 * What the parts of the store have in common, in its folder only.  Its names
 * and its folder are in filestore_parts.c, what is used of it is in
 * filestore_open.c.
 */

#define FILESTORE_NEW "new-"
#define FILESTORE_META ".meta"
#define FILESTORE_NAME_SIZE \
	(sizeof(FILESTORE_NEW) + FILESTORE_ID_LEN + sizeof(FILESTORE_META))
/* Of nobody's file: "1 ", the upload time, "\n", the name.  Of somebody's:
 * "2 ", the owner in hex, " ", and then the same. */
#define FILESTORE_META_FREE "1 "
#define FILESTORE_META_OWNED "2 "
#define FILESTORE_META_MAX (128 + FILESTORE_NAME_MAX)

/* before, id, after; returns name. */
const char *filestore_make_name(char name[FILESTORE_NAME_SIZE],
    const char *before, const char *id, const char *after);
/* Does it serve an owner, or everybody? */
bool filestore_is_owned(const struct filestore *store);
/* With an owner the first digits of an id are its: whose a file is, is known
 * without opening it, to count what each has.  90 bits are left that nobody can
 * guess.  Returns the tag. */
#define FILESTORE_TAG_LEN 8
const char *filestore_tag(const struct filestore *store,
    char tag[FILESTORE_TAG_LEN + 1]);
/* A stream over the folder, with a position of its own; NULL: errno. */
DIR *filestore_open_folder(const struct filestore *store);
/* A regular file by that name, as it is now. */
bool filestore_stat(const struct filestore *store, const char *name,
    struct stat *st);
/* When it was used last, in wall clock milliseconds. */
int64_t filestore_used_ms(const struct stat *st);
/* Remove a file that is there, and its metadata, and account for it; -1: errno.
 * After filestore_enter(). */
int filestore_remove(struct filestore *store, const char *id,
    const struct stat *st);

/* ---- what is used, by all processes together ---- */

#define FILESTORE_OWNERS 4096

/* Of an owner: its tag, without a NUL; what it has, what comes included. */
struct filestore_owned {
	char tag[FILESTORE_TAG_LEN];
	int64_t bytes;
	int64_t files;
};

struct filestore_usage {
	int64_t bytes;
	int64_t files;
	int64_t due_ms;	       /* wall clock: nothing ends before */
	int64_t room_again_ms; /* monotonic: not swept to make room before */
	/* Owners who have made a file since the store was opened, so many. */
	size_t owner_count;
	struct filestore_owned owners[FILESTORE_OWNERS];
};

/* Around whatever changes both the folder and the count of it: of a file that
 * comes, all steps from the first to the last.  Calls nest.  Several processes
 * may be between the two at one time; a new count waits for none of them, and
 * is only made when there is none. */
void filestore_enter(struct filestore *store);
void filestore_leave(struct filestore *store);

/* id: the file's, or its owner's tag; "" for nobody's. */
void filestore_account(struct filestore *store, const char *id, int64_t bytes,
    int64_t files);
/* Into a count of one's own, in which the owners are. */
void filestore_add(struct filestore_usage *usage, const char *id, int64_t bytes,
    int64_t files);
/* That is what there is, and not what was accounted for.  Owners who have
 * nothing are forgotten.  Nobody may be between the two above. */
void filestore_count(struct filestore *store,
    const struct filestore_usage *there);
/* Account for them if they fit; ERR_LIMIT: they do not.  ERR_QUOTA: the owner
 * would have more than its share. */
int filestore_reserve(struct filestore *store, const char *id, int64_t bytes,
    int64_t files, struct err *err);
/* The store's owner is among those that are counted; the first time the folder
 * is read for that.  After filestore_enter(). */
int filestore_count_owner(struct filestore *store, struct err *err);
/* Remove the data of a file and account for it, beside owners who are being
 * added; -1: errno. */
int filestore_unlink(struct filestore *store, const char *name, const char *id,
    int64_t bytes);
/* Has the owner of that file no more than its share? */
bool filestore_is_within_share(struct filestore *store, const char *id);
/* Who adds an owner is alone at it. */
void filestore_lock_owners(struct filestore *store);
void filestore_unlock_owners(struct filestore *store);

#endif
