/* SPDX-License-Identifier: MIT */
/*
 * Usage of the store, counted by all processes together, and the senders'
 * shares: each sender may have one part of FILESTORE_SHARE, also of files that
 * belong to others.
 *
 * A sender's usage is counted in shared memory, as the whole is.  Its row is
 * made from the folder when it begins its first file.  Each sweep that runs
 * without other changes corrects it.
 */
#include "files/filestore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "base/basics.h"

#define ROOM_AGAIN_MS 1000

/* ---- senders ---- */

bool
filestore_is_owned(const struct filestore *store)
{
	return store->owner != NULL &&
	    !sodium_is_zero(store->owner, FILESTORE_OWNER_LEN);
}

void
filestore_tag(const struct filestore *store, char tag[FILESTORE_TAG_LEN + 1])
{
	const unsigned char *sender = store->sender != NULL ? store->sender :
							      store->owner;

	tag[0] = '\0';
	if (filestore_is_owned(store) &&
	    !sodium_is_zero(sender, FILESTORE_OWNER_LEN))
		(void)sodium_bin2hex(tag, FILESTORE_TAG_LEN + 1, sender,
		    FILESTORE_TAG_LEN / 2);
}

/* ---- locks ---- */

/* Locks that a process has, not a descriptor, which is the same in all. */
bool
filestore_lock(struct filestore *store, enum filestore_lock which, short type,
    bool wait)
{
	struct flock lock = { .l_type = type,
		.l_whence = SEEK_SET,
		.l_start = which,
		.l_len = 1 };

	return TEMP_FAILURE_RETRY(fcntl(store->lock, wait ? F_SETLKW : F_SETLK,
		   &lock)) == 0;
}

void
filestore_enter(struct filestore *store)
{
	if (store->at_work++ == 0)
		(void)filestore_lock(store, FILESTORE_LOCK_CHANGES, F_RDLCK,
		    true);
}

void
filestore_leave(struct filestore *store)
{
	if (--store->at_work == 0)
		(void)filestore_lock(store, FILESTORE_LOCK_CHANGES, F_UNLCK,
		    false);
}

/* A sender who is added meanwhile has it, or has it not, on both sides. */
int
filestore_unlink(struct filestore *store, const char *name, const char *id,
    int64_t bytes)
{
	int result;
	int saved;

	(void)filestore_lock(store, FILESTORE_LOCK_OWNERS, F_RDLCK, true);
	result = unlinkat(store->dir, name, 0);
	saved = errno;
	if (result == 0)
		filestore_count(store->usage, id, -bytes, -1);
	(void)filestore_lock(store, FILESTORE_LOCK_OWNERS, F_UNLCK, false);
	errno = saved;
	return result;
}

/* ---- the count ---- */

/* The row of a file's sender, or of a tag's; NULL: there is none. */
static struct filestore_owned *
filestore_usage_find(struct filestore_usage *usage, const char *id)
{
	size_t count = usage->owner_count;

	for (size_t i = 0; i < count; i++)
		if (strncmp(usage->owners[i].tag, id, FILESTORE_TAG_LEN) == 0)
			return &usage->owners[i];
	return NULL;
}

void
filestore_count(struct filestore_usage *usage, const char *id, int64_t bytes,
    int64_t files)
{
	struct filestore_owned *owned = filestore_usage_find(usage, id);

	usage->bytes += bytes;
	usage->files += files;
	if (owned == NULL)
		return;
	owned->bytes += bytes;
	owned->files += files;
}

/* The row of a new sender: the next unused one, or else one of a sender without
 * files, which gets a new row with its next file. */
static struct filestore_owned *
free_row(struct filestore_usage *usage)
{
	if (usage->owner_count < FILESTORE_OWNERS)
		return &usage->owners[usage->owner_count];
	for (size_t i = 0; i < FILESTORE_OWNERS; i++)
		if (usage->owners[i].files <= 0)
			return &usage->owners[i];
	return NULL;
}

/* Add up the sender's files in the folder, incoming ones included. */
static int
add_up(const struct filestore *store, struct filestore_owned *owned,
    struct err *err)
{
	DIR *folder = filestore_open_folder(store, err);
	const struct dirent *item;
	struct stat st;

	if (folder == NULL)
		return -1;
	while ((item = readdir(folder)) != NULL) {
		const char *id = filestore_data_id(item->d_name);

		if (id == NULL ||
		    strncmp(id, owned->tag, FILESTORE_TAG_LEN) != 0 ||
		    !filestore_stat(store, item->d_name, &st))
			continue;
		owned->bytes += st.st_size;
		owned->files++;
	}
	(void)closedir(folder);
	return 0;
}

int
filestore_add_owner(struct filestore *store, struct err *err)
{
	struct filestore_usage *usage = store->usage;
	struct filestore_owned *owned;
	char tag[FILESTORE_TAG_LEN + 1];
	int result = 0;
	bool known;

	filestore_tag(store, tag);
	if (tag[0] == '\0' || filestore_usage_find(usage, tag) != NULL)
		return 0;
	(void)filestore_lock(store, FILESTORE_LOCK_OWNERS, F_WRLCK, true);
	/* Another process may have been faster. */
	known = filestore_usage_find(usage, tag) != NULL;
	owned = known ? NULL : free_row(usage);
	if (!known && owned == NULL) {
		result = err_set(err, ERR_LIMIT, "the file store is full");
	} else if (!known) {
		memset(owned, 0, sizeof(*owned));
		memcpy(owned->tag, tag, FILESTORE_TAG_LEN);
		result = add_up(store, owned, err);
		if (result == 0 && owned == &usage->owners[usage->owner_count])
			usage->owner_count++;
	}
	(void)filestore_lock(store, FILESTORE_LOCK_OWNERS, F_UNLCK, false);
	return result;
}

/* ---- room ---- */

/* Count bytes and files.  If they do not fit, undo that. */
static enum err_code
filestore_usage_add(struct filestore *store, const char *id, int64_t bytes,
    int64_t files)
{
	struct filestore_usage *usage = store->usage;
	const struct filestore_limits *limits = &store->limits;
	const struct filestore_owned *owned = filestore_usage_find(usage, id);
	enum err_code code = ERR_NONE;

	filestore_count(usage, id, bytes, files);
	if (owned != NULL &&
	    (owned->bytes > limits->quota / FILESTORE_SHARE ||
		owned->files > limits->count_max / FILESTORE_SHARE))
		code = ERR_QUOTA;
	else if (usage->bytes > limits->quota ||
	    usage->files > limits->count_max)
		code = ERR_LIMIT;
	if (code != ERR_NONE)
		filestore_count(usage, id, -bytes, -files);
	return code;
}

/* Sweep expired files, so that new ones fit.  There is no sweep when no file
 * has expired, and frequent refusals do not cause frequent sweeps. */
static bool
make_room(struct filestore *store)
{
	struct filestore_usage *usage = store->usage;
	int64_t before = usage->room_again_ms;
	int64_t now = clock_monotonic_ms();
	int64_t took;

	if (now < before || clock_wall_ms() < usage->due_ms ||
	    !atomic_compare_exchange_strong(&usage->room_again_ms, &before,
		now + ROOM_AGAIN_MS))
		return false;
	(void)filestore_sweep(store);
	took = clock_monotonic_ms() - now;
	if (10 * took > ROOM_AGAIN_MS)
		usage->room_again_ms = now + 10 * took;
	return true;
}

int
filestore_reserve(struct filestore *store, const char *id, int64_t bytes,
    int64_t files, struct err *err)
{
	enum err_code code = filestore_usage_add(store, id, bytes, files);

	/* The sweep may have removed the row of a sender without files. */
	if (code != ERR_NONE && make_room(store) &&
	    filestore_add_owner(store, err) == 0)
		code = filestore_usage_add(store, id, bytes, files);
	return code == ERR_NONE ?
	    0 :
	    err_set(err, code, "%s",
		code == ERR_QUOTA ? "its sender's share is used up" :
				    "the file store is full");
}
