#include "filestore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

#define ROOM_AGAIN_MS 1000

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

/* ---- the store ---- */

/* Usage is counted by all processes that are forked after this. */
int
filestore_open(struct filestore *store, const char *path,
    const struct filestore_limits *limits, struct err *err)
{
	void *memory;

	memset(store, 0, sizeof(*store));
	store->limits = *limits;
	if (fd_make_dirs(path, 0700, err) < 0)
		return -1;
	store->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dir < 0)
		return err_system(err, "open %s", path);
	memory = mmap(NULL, sizeof(*store->usage), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		(void)err_system(err, "memory for the file store");
		(void)close(store->dir);
		return -1;
	}
	store->usage = memory;
	store->lock = memfd_create("file-store", MFD_CLOEXEC);
	if (store->lock < 0) {
		(void)err_system(err, "a lock for the file store");
		filestore_close(store);
		return -1;
	}
	(void)filestore_sweep(store);
	return 0;
}

void
filestore_close(struct filestore *store)
{
	if (store->usage != NULL)
		(void)munmap(store->usage, sizeof(*store->usage));
	if (store->dir >= 0)
		(void)close(store->dir);
	cleanup_close(&store->lock);
	store->usage = NULL;
	store->dir = -1;
}

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

/* ---- room ---- */

/* Locks that a process has, not a descriptor, which is the same in all. */
static bool
set_lock(struct filestore *store, int how, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
	int result;

	do
		result = fcntl(store->lock, how, &lock);
	while (result < 0 && errno == EINTR);
	return result == 0;
}

void
filestore_enter(struct filestore *store)
{
	if (store->at_work++ == 0)
		(void)set_lock(store, F_SETLKW, F_RDLCK);
}

void
filestore_leave(struct filestore *store)
{
	if (--store->at_work == 0)
		(void)set_lock(store, F_SETLK, F_UNLCK);
}

bool
filestore_may_count(struct filestore *store)
{
	return set_lock(store, F_SETLK, F_WRLCK);
}

void
filestore_counted(struct filestore *store)
{
	(void)set_lock(store, F_SETLK, store->at_work > 0 ? F_RDLCK : F_UNLCK);
}

void
filestore_account(struct filestore *store, int64_t bytes, int64_t files)
{
	(void)__atomic_fetch_add(&store->usage->bytes, bytes, __ATOMIC_RELAXED);
	(void)__atomic_fetch_add(&store->usage->files, files, __ATOMIC_RELAXED);
}

void
filestore_count(struct filestore *store, int64_t bytes, int64_t files)
{
	__atomic_store_n(&store->usage->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&store->usage->files, files, __ATOMIC_RELAXED);
}

void
filestore_usage(const struct filestore *store, int64_t *bytes, int64_t *files)
{
	*bytes = __atomic_load_n(&store->usage->bytes, __ATOMIC_RELAXED);
	*files = __atomic_load_n(&store->usage->files, __ATOMIC_RELAXED);
}

static bool
fits(struct filestore *store, int64_t bytes, int64_t files)
{
	int64_t all_bytes;
	int64_t all_files;

	filestore_account(store, bytes, files);
	filestore_usage(store, &all_bytes, &all_files);
	if (all_bytes <= store->limits.quota &&
	    all_files <= store->limits.count_max)
		return true;
	filestore_account(store, -bytes, -files);
	return false;
}

/* What has expired need not keep others out; but who is refused often does not
 * make us sweep as often. */
static bool
make_room(struct filestore *store)
{
	int64_t *last = &store->usage->room_made_ms;
	int64_t before = __atomic_load_n(last, __ATOMIC_RELAXED);
	int64_t now = clock_monotonic_ms();

	if ((before != 0 && now - before < ROOM_AGAIN_MS) ||
	    !__atomic_compare_exchange_n(last, &before, now, false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	(void)filestore_sweep(store);
	return true;
}

int
filestore_reserve(struct filestore *store, int64_t bytes, int64_t files,
    struct err *err)
{
	if (fits(store, bytes, files) ||
	    (make_room(store) && fits(store, bytes, files)))
		return 0;
	return err_set(err, ERR_LIMIT, "the file store is full");
}

/* ---- files that are there ---- */

void
filestore_entry_release(struct filestore_entry *entry)
{
	free(entry->name);
	entry->name = NULL;
}

bool
filestore_is_owned(const struct filestore *store)
{
	return store->owner != NULL &&
	    !sodium_is_zero(store->owner, FILESTORE_OWNER_LEN);
}

/* Whose is not ours is not there. */
static bool
is_ours(const struct filestore *store, const struct filestore_entry *entry)
{
	return !filestore_is_owned(store) ||
	    sodium_memcmp(entry->owner, store->owner, FILESTORE_OWNER_LEN) == 0;
}

/* The first line of the metadata. */
static bool
read_head(struct filestore_entry *entry, const char *line)
{
	const size_t hex = 2 * sizeof(entry->owner);

	if (strncmp(line, FILESTORE_META_OWNED, 2) == 0) {
		line += 2;
		if (strlen(line) <= hex || line[hex] != ' ' ||
		    !text_parse_hex(line, hex, entry->owner,
			sizeof(entry->owner)))
			return false;
		line += hex + 1;
	} else if (strncmp(line, FILESTORE_META_FREE, 2) == 0) {
		line += 2;
	} else {
		return false;
	}
	return text_parse_int(line, 0, INT64_MAX, &entry->uploaded_ms);
}

/* Fill an entry with what its metadata says; without, with what can be said. */
static void
read_meta(const struct filestore *store, struct filestore_entry *entry)
{
	auto_free char *text = xmalloc(FILESTORE_META_MAX + 1);
	auto_close int fd = -1;
	char name[FILESTORE_NAME_SIZE];
	ssize_t len = -1;
	char *line;

	entry->uploaded_ms = entry->used_ms;
	fd = openat(store->dir,
	    filestore_make_name(name, "", entry->id, FILESTORE_META),
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		len = read(fd, text, FILESTORE_META_MAX);
	text[len > 0 ? len : 0] = '\0';
	line = strchr(text, '\n');
	if (line != NULL)
		*line = '\0';
	if (line == NULL || !read_head(entry, text)) {
		entry->name = xstrdup("unnamed");
		return;
	}
	entry->name = xstrdup(line + 1);
}

static bool
is_expired(const struct filestore *store, int64_t used)
{
	return used + store->limits.ttl_ms <= clock_wall_ms();
}

static void
fill_entry(const struct filestore *store, const char *id, const struct stat *st,
    struct filestore_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	(void)snprintf(entry->id, sizeof(entry->id), "%s", id);
	entry->size = st->st_size;
	entry->used_ms = filestore_used_ms(st);
	read_meta(store, entry);
}

/* Of a file that is there: may it be used?  entry NULL: just the answer. */
static bool
look_at(const struct filestore *store, const char *id, const struct stat *st,
    struct filestore_entry *entry)
{
	struct filestore_entry own;
	bool good;

	if (is_expired(store, filestore_used_ms(st)))
		return false;
	if (entry == NULL && !filestore_is_owned(store))
		return true;
	fill_entry(store, id, st, &own);
	good = is_ours(store, &own);
	if (good && entry != NULL)
		*entry = own;
	else
		filestore_entry_release(&own);
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

int
filestore_delete(struct filestore *store, const char *id, size_t len,
    struct err *err)
{
	struct stat st;
	int result;

	if (!filestore_is_id(id, len) || !filestore_stat(store, id, &st) ||
	    !look_at(store, id, &st, NULL))
		return err_set(err, ERR_NOT_FOUND, "no such file");
	filestore_enter(store);
	result = filestore_remove(store, id, &st);
	if (result < 0 && errno != ENOENT)
		(void)err_system(err, "remove a file of the store");
	else
		result = 0;
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
		filestore_entry_release(&entry);
	}
	(void)closedir(folder);
	return 0;
}
