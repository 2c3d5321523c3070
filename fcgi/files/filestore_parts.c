/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the store share: names, owners, the folder.
 */
#include "filestore_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "../../sandbox/base/err.h"

/* ---- names ---- */

bool
filestore_is_id(const char *id, size_t len)
{
	if (len != FILESTORE_ID_LEN || id[14] != '4' ||
	    strchr("89ab", id[19]) == NULL)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? id[i] != '-' :
			   !((id[i] >= '0' && id[i] <= '9') ||
			       (id[i] >= 'a' && id[i] <= 'f')))
			return false;
	}
	return true;
}

const char *
filestore_make_name(char name[FILESTORE_NAME_SIZE], const char *before,
    const char *id, const char *after)
{
	(void)snprintf(name, FILESTORE_NAME_SIZE, "%s%s%s", before, id, after);
	return name;
}

int64_t
filestore_used_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 +
	    st->st_mtim.tv_nsec / 1000000;
}

/* ---- whose ---- */

bool
filestore_is_owned(const struct filestore *store)
{
	return store->owner != NULL &&
	    !sodium_is_zero(store->owner, FILESTORE_OWNER_LEN);
}

const char *
filestore_tag(const struct filestore *store, char tag[FILESTORE_TAG_LEN + 1])
{
	return sodium_bin2hex(tag, FILESTORE_TAG_LEN + 1, store->owner,
	    FILESTORE_TAG_LEN / 2);
}

/* ---- the folder ---- */

DIR *
filestore_open_folder(const struct filestore *store)
{
	int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (folder == NULL && fd >= 0)
		(void)close(fd);
	return folder;
}

bool
filestore_stat(const struct filestore *store, const char *name, struct stat *st)
{
	return fstatat(store->dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st->st_mode);
}

int
filestore_remove(struct filestore *store, const char *id, const struct stat *st)
{
	char name[FILESTORE_NAME_SIZE];

	if (filestore_unlink(store, id, id, st->st_size) < 0)
		return -1;
	(void)unlinkat(store->dir,
	    filestore_make_name(name, "", id, FILESTORE_META), 0);
	return 0;
}
