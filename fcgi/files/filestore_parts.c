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

	if (unlinkat(store->dir, id, 0) < 0)
		return -1;
	(void)unlinkat(store->dir,
	    filestore_make_name(name, "", id, FILESTORE_META), 0);
	filestore_account(store, -(int64_t)st->st_size, -1);
	return 0;
}

/* ---- shares ---- */

/* What the folder has of the owner's, what is on its way included. */
static int
add_up(const struct filestore *store, int64_t *bytes, int64_t *files,
    struct err *err)
{
	static const size_t new_len = sizeof(FILESTORE_NEW) - 1;
	DIR *folder = filestore_open_folder(store);
	char tag[FILESTORE_TAG_LEN + 1];
	const struct dirent *item;
	struct stat st;

	if (folder == NULL)
		return err_system(err, "read the file store");
	*bytes = *files = 0;
	(void)filestore_tag(store, tag);
	while ((item = readdir(folder)) != NULL) {
		const char *id = item->d_name;

		if (strncmp(id, FILESTORE_NEW, new_len) == 0)
			id += new_len;
		if (strncmp(id, tag, FILESTORE_TAG_LEN) != 0 ||
		    !filestore_is_id(id, strlen(id)) ||
		    !filestore_stat(store, item->d_name, &st))
			continue;
		*bytes += st.st_size;
		(*files)++;
	}
	(void)closedir(folder);
	return 0;
}

int
filestore_share_left(const struct filestore *store, int64_t *left,
    struct err *err)
{
	const struct filestore_limits *limits = &store->limits;
	int64_t bytes = 0;
	int64_t files = 0;

	*left = INT64_MAX;
	if (!filestore_is_owned(store))
		return 0;
	if (add_up(store, &bytes, &files, err) != 0)
		return -1;
	*left = limits->quota / FILESTORE_SHARE - bytes;
	if (*left >= 0 && files <= limits->count_max / FILESTORE_SHARE)
		return 0;
	return err_set(err, ERR_QUOTA, "its owner's share is used up");
}
