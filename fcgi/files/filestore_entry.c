/* SPDX-License-Identifier: MIT */
/*
 * Files that are there: each has an owner, a time and a name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "filestore_parts.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/text.h"

/* The first line of the metadata. */
static bool
read_head(struct filestore_entry *entry, const char *line)
{
	const size_t hex = 2 * sizeof(entry->owner);

	if (strncmp(line, FILESTORE_META_OWNED, 2) == 0 &&
	    strlen(line) > hex + 2 && line[hex + 2] == ' ' &&
	    text_parse_hex(line + 2, hex, entry->owner, sizeof(entry->owner)))
		line += hex + 3;
	else if (strncmp(line, FILESTORE_META_FREE, 2) == 0)
		line += 2;
	else
		return false;
	return text_parse_int(line, 0, INT64_MAX, &entry->uploaded_ms);
}

/* Fill an entry with what its metadata says; without, with what can be said. */
static void
read_meta(const struct filestore *store, struct filestore_entry *entry)
{
	auto_free char *text = xmalloc(FILESTORE_META_MAX + 1);
	auto_close int fd = -1;
	ssize_t len = -1;
	char *line;

	entry->uploaded_ms = entry->used_ms;
	fd = openat(store->dir, filestore_name("", entry->id, FILESTORE_META).s,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		len = read(fd, text, FILESTORE_META_MAX);
	text[len > 0 ? len : 0] = '\0';
	line = strchr(text, '\n');
	if (line != NULL)
		*line = '\0';
	entry->name = xstrdup(line != NULL && read_head(entry, text) ?
		line + 1 :
		"unnamed");
}

/* Of a file that is there: may it be used?  Fills the entry, if so; NULL: just
 * the answer. */
static bool
look_at(const struct filestore *store, const char *id, const struct stat *st,
    struct filestore_entry *entry)
{
	struct filestore_entry own = { .size = st->st_size,
		.used_ms = filestore_used_ms(st) };
	bool good;

	if (own.used_ms + store->limits.ttl_ms <= clock_wall_ms())
		return false;
	if (entry == NULL && !filestore_is_owned(store))
		return true;
	(void)snprintf(own.id, sizeof(own.id), "%s", id);
	read_meta(store, &own);
	/* What is not its owner's is not there. */
	good = !filestore_is_owned(store) ||
	    sodium_memcmp(own.owner, store->owner, FILESTORE_OWNER_LEN) == 0;
	if (good && entry != NULL)
		*entry = own;
	else
		free(own.name);
	return good;
}

int
filestore_get(struct filestore *store, const char *id, size_t len,
    struct filestore_entry *entry, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (!filestore_is_id(id, len))
		return err_set(err, ERR_NOT_FOUND, "not an id of a file");
	fd = openat(store->dir, id,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT && errno != ELOOP)
		return err_system(err, "open a file of the store");
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !look_at(store, id, &st, entry))
		return err_set(err, ERR_NOT_FOUND, "no such file");
	(void)futimens(fd, NULL);
	return steal_fd(&fd);
}

int
filestore_delete(struct filestore *store, const char *id, size_t len,
    struct err *err)
{
	struct stat st;
	int result = 0;

	if (!filestore_is_id(id, len) || !filestore_stat(store, id, &st) ||
	    !look_at(store, id, &st, NULL))
		return err_set(err, ERR_NOT_FOUND, "no such file");
	filestore_enter(store);
	if (filestore_remove(store, id, &st) < 0 && errno != ENOENT)
		result = err_system(err, "remove a file of the store");
	filestore_leave(store);
	return result;
}

int
filestore_each(struct filestore *store, filestore_each_fn *each, void *arg,
    struct err *err)
{
	DIR *folder = filestore_open_folder(store);
	const struct dirent *item;
	bool more = true;
	struct stat st;

	if (folder == NULL)
		return err_system(err, "read the file store");
	while (more && (item = readdir(folder)) != NULL) {
		struct filestore_entry entry;

		if (!filestore_is_id(item->d_name, strlen(item->d_name)) ||
		    !filestore_stat(store, item->d_name, &st) ||
		    !look_at(store, item->d_name, &st, &entry))
			continue;
		more = each(arg, &entry);
		free(entry.name);
	}
	(void)closedir(folder);
	return 0;
}
