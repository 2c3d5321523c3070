/*
 * How much of its share an owner has left.
 */
#include <dirent.h>
#include <string.h>

#include "filestore_parts.h"

#include "../../sandbox/base/err.h"

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
	filestore_tag(store, tag);
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
