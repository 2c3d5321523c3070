/* SPDX-License-Identifier: MIT */
/*
 * Owners and their shares: each may have one part of FILESTORE_SHARE.
 *
 * What an owner has is counted like the whole, in shared memory.  Its row is
 * made when it begins a file for the first time, by a look at the folder, and
 * corrected by each sweep that is alone.
 */
#include <dirent.h>
#include <string.h>

#include "filestore_parts.h"

#include "../../sandbox/base/err.h"

static struct filestore_owned *
find(struct filestore_usage *usage, const char *id)
{
	size_t count = __atomic_load_n(&usage->owner_count, __ATOMIC_ACQUIRE);

	for (size_t i = 0; i < count; i++)
		if (strncmp(usage->owners[i].tag, id, FILESTORE_TAG_LEN) == 0)
			return &usage->owners[i];
	return NULL;
}

void
filestore_add(struct filestore_usage *usage, const char *id, int64_t bytes,
    int64_t files)
{
	struct filestore_owned *owned = find(usage, id);

	(void)__atomic_fetch_add(&usage->bytes, bytes, __ATOMIC_RELAXED);
	(void)__atomic_fetch_add(&usage->files, files, __ATOMIC_RELAXED);
	if (owned == NULL)
		return;
	(void)__atomic_fetch_add(&owned->bytes, bytes, __ATOMIC_RELAXED);
	(void)__atomic_fetch_add(&owned->files, files, __ATOMIC_RELAXED);
}

bool
filestore_is_within_share(struct filestore *store, const char *id)
{
	const struct filestore_owned *owned = find(store->usage, id);
	const struct filestore_limits *limits = &store->limits;

	return owned == NULL ||
	    (__atomic_load_n(&owned->bytes, __ATOMIC_RELAXED) <=
		    limits->quota / FILESTORE_SHARE &&
		__atomic_load_n(&owned->files, __ATOMIC_RELAXED) <=
		    limits->count_max / FILESTORE_SHARE);
}

/* What the folder has of the owner's, what is on its way included. */
static int
add_up(const struct filestore *store, struct filestore_owned *owned,
    struct err *err)
{
	static const size_t new_len = sizeof(FILESTORE_NEW) - 1;
	DIR *folder = filestore_open_folder(store);
	const struct dirent *item;
	struct stat st;

	if (folder == NULL)
		return err_system(err, "read the file store");
	while ((item = readdir(folder)) != NULL) {
		const char *id = item->d_name;

		if (strncmp(id, FILESTORE_NEW, new_len) == 0)
			id += new_len;
		if (strncmp(id, owned->tag, FILESTORE_TAG_LEN) != 0 ||
		    !filestore_is_id(id, strlen(id)) ||
		    !filestore_stat(store, item->d_name, &st))
			continue;
		owned->bytes += st.st_size;
		owned->files++;
	}
	(void)closedir(folder);
	return 0;
}

int
filestore_count_owner(struct filestore *store, struct err *err)
{
	struct filestore_usage *usage = store->usage;
	struct filestore_owned owned = { .files = 0 };
	char tag[FILESTORE_TAG_LEN + 1];
	int result = 0;

	if (!filestore_is_owned(store))
		return 0;
	filestore_tag(store, tag);
	if (find(usage, tag) != NULL)
		return 0;
	memcpy(owned.tag, tag, FILESTORE_TAG_LEN);
	filestore_lock_owners(store);
	/* Another process may have been faster. */
	if (find(usage, tag) == NULL) {
		if (usage->owner_count == FILESTORE_OWNERS)
			result = err_set(err, ERR_LIMIT, "too many owners");
		else
			result = add_up(store, &owned, err);
		if (result == 0) {
			usage->owners[usage->owner_count] = owned;
			(void)__atomic_fetch_add(&usage->owner_count, 1,
			    __ATOMIC_RELEASE);
		}
	}
	filestore_unlock_owners(store);
	return result;
}
