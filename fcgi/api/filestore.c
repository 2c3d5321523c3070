#include "filestore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/text.h"

#define NEW "new-"
#define META ".meta"
#define NAME_SIZE (sizeof(NEW) + FILESTORE_ID_LEN + sizeof(META))
#define META_VERSION "1 " /* then the upload time, "\n", the name */
#define META_MAX (64 + FILESTORE_NAME_MAX)
#define COUNT_AGAIN_MS 1000
#define ORPHAN_MS 60000 /* metadata comes before its file */

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

static int
make_id(char id[FILESTORE_ID_LEN + 1], struct err *err)
{
	unsigned char r[16];
	size_t n = 0;

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return err_system(err, "getrandom");
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(r); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			id[n++] = '-';
		(void)snprintf(id + n, 3, "%02x", r[i]);
		n += 2;
	}
	return 0;
}

static const char *
make_name(char name[NAME_SIZE], const char *before, const char *id,
    const char *after)
{
	(void)snprintf(name, NAME_SIZE, "%s%s%s", before, id, after);
	return name;
}

static int64_t
used_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 +
	    st->st_mtim.tv_nsec / 1000000;
}

/* ---- the store ---- */

int
filestore_open(struct filestore *store, const char *path,
    const struct filestore_limits *limits, struct err *err)
{
	memset(store, 0, sizeof(*store));
	store->limits = *limits;
	store->counted_ms = INT64_MIN / 2;
	if (fd_make_dirs(path, 0700, err) < 0)
		return -1;
	store->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dir < 0)
		return err_system(err, "open %s", path);
	return 0;
}

void
filestore_close(struct filestore *store)
{
	if (store->dir >= 0)
		(void)close(store->dir);
	store->dir = -1;
}

/* A stream over the folder, with a position of its own; NULL: errno. */
static DIR *
open_folder(const struct filestore *store)
{
	int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (folder == NULL && fd >= 0)
		(void)close(fd);
	return folder;
}

/* A file of ours by that name, as it is now. */
static bool
stat_file(const struct filestore *store, const char *name, struct stat *st)
{
	return fstatat(store->dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st->st_mode);
}

/* Count again what others may have changed, but not for every file. */
static void
count_used(struct filestore *store)
{
	int64_t now = clock_monotonic_ms();
	const struct dirent *item;
	struct stat st;
	DIR *folder;

	if (now - store->counted_ms < COUNT_AGAIN_MS)
		return;
	folder = open_folder(store);
	if (folder == NULL)
		return;
	store->counted_ms = now;
	store->used = 0;
	store->count = 0;
	while ((item = readdir(folder)) != NULL) {
		size_t len = strlen(item->d_name);

		if (len < FILESTORE_ID_LEN ||
		    !stat_file(store, item->d_name, &st))
			continue;
		store->used += st.st_size;
		store->count += filestore_is_id(item->d_name, len) ? 1 : 0;
	}
	(void)closedir(folder);
}

static int
check_room(struct filestore *store, int64_t size, struct err *err)
{
	struct statvfs fs;

	if (store->used + size > store->limits.quota)
		return err_set(err, ERR_LIMIT, "the file store is full");
	if (fstatvfs(store->dir, &fs) == 0 &&
	    (int64_t)(fs.f_bavail * fs.f_frsize) - size < store->limits.floor)
		return err_set(err, ERR_LIMIT, "the disk is nearly full");
	return 0;
}

/* ---- a file as it comes ---- */

int
filestore_begin(struct filestore *store, struct filestore_new *file,
    struct err *err)
{
	char name[NAME_SIZE];

	memset(file, 0, sizeof(*file));
	count_used(store);
	if (store->count >= store->limits.count_max)
		return err_set(err, ERR_LIMIT,
		    "the file store has no room for "
		    "more files");
	if (check_room(store, 0, err) < 0 || make_id(file->id, err) < 0)
		return -1;
	file->fd = openat(store->dir, make_name(name, NEW, file->id, ""),
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file->fd < 0)
		return err_system(err, "create a file in the store");
	file->store = store;
	/* says to a sweeper that we are alive */
	(void)flock(file->fd, LOCK_EX | LOCK_NB);
	return 0;
}

int
filestore_write(struct filestore_new *file, const void *data, size_t len,
    struct err *err)
{
	struct filestore *store = file->store;

	if (check_room(store, (int64_t)len, err) < 0)
		return -1;
	if (fd_write_all(file->fd, data, len, err) < 0) {
		if (errno == ENOSPC || errno == EDQUOT)
			err->code = ERR_LIMIT;
		return -1;
	}
	file->size += (int64_t)len;
	store->used += (int64_t)len;
	return 0;
}

int
filestore_restart(struct filestore_new *file, struct err *err)
{
	if (ftruncate(file->fd, 0) < 0 || lseek(file->fd, 0, SEEK_SET) < 0)
		return err_system(err, "empty a file in the store");
	file->store->used -= file->size;
	file->size = 0;
	return 0;
}

void
filestore_abort(struct filestore_new *file)
{
	char name[NAME_SIZE];

	if (file->store == NULL)
		return;
	(void)unlinkat(file->store->dir, make_name(name, NEW, file->id, ""), 0);
	(void)unlinkat(file->store->dir, make_name(name, NEW, file->id, META),
	    0);
	(void)close(file->fd);
	file->store->used -= file->size;
	file->store = NULL;
}

/* Write "<id>.meta" whole or not at all. */
static int
write_meta(const struct filestore_new *file, const char *name, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(META_MAX);
	auto_close int fd = -1;
	int dir = file->store->dir;
	char from[NAME_SIZE];
	char to[NAME_SIZE];

	buf_addf(&text, META_VERSION "%lld\n", (long long)clock_wall_ms());
	buf_add(&text, name, strnlen(name, FILESTORE_NAME_MAX));
	fd = openat(dir, make_name(from, NEW, file->id, META),
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_system(err, "create metadata in the store");
	if (fd_write_all(fd, buf_str(&text), text.len, err) < 0)
		return -1;
	if (renameat(dir, from, dir, make_name(to, "", file->id, META)) < 0)
		return err_system(err, "rename metadata in the store");
	return 0;
}

int
filestore_commit(struct filestore_new *file, const char *name, struct err *err)
{
	struct filestore *store = file->store;
	char from[NAME_SIZE];
	char to[NAME_SIZE];

	if (write_meta(file, name, err) < 0) {
		filestore_abort(file);
		return -1;
	}
	if (renameat(store->dir, make_name(from, NEW, file->id, ""), store->dir,
		make_name(to, "", file->id, "")) < 0) {
		(void)err_system(err, "rename a file in the store");
		(void)unlinkat(store->dir, make_name(to, "", file->id, META),
		    0);
		filestore_abort(file);
		return -1;
	}
	store->count++;
	(void)close(file->fd);
	file->store = NULL;
	return 0;
}

/* ---- files that are there ---- */

void
filestore_entry_release(struct filestore_entry *entry)
{
	free(entry->name);
	entry->name = NULL;
}

/* Fill an entry with what its metadata says; without, with what can be said. */
static void
read_meta(const struct filestore *store, struct filestore_entry *entry)
{
	auto_free char *text = xmalloc(META_MAX + 1);
	auto_close int fd = -1;
	char name[NAME_SIZE];
	ssize_t len = -1;
	char *line;

	entry->uploaded_ms = entry->used_ms;
	fd = openat(store->dir, make_name(name, "", entry->id, META),
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		len = read(fd, text, META_MAX);
	text[len > 0 ? len : 0] = '\0';
	line = strchr(text, '\n');
	if (line != NULL)
		*line = '\0';
	if (line == NULL ||
	    strncmp(text, META_VERSION, strlen(META_VERSION)) != 0 ||
	    !text_parse_int(text + strlen(META_VERSION), 0, INT64_MAX,
		&entry->uploaded_ms)) {
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
	entry->used_ms = used_ms(st);
	read_meta(store, entry);
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
	    is_expired(store, used_ms(&st)))
		return err_set(err, ERR_NOT_FOUND, "no such file");
	(void)futimens(fd, NULL);
	if (entry != NULL)
		fill_entry(store, id, &st, entry);
	return steal_fd(&fd);
}

static int
remove_file(struct filestore *store, const char *id, const struct stat *st)
{
	char name[NAME_SIZE];

	if (unlinkat(store->dir, id, 0) < 0)
		return -1;
	(void)unlinkat(store->dir, make_name(name, "", id, META), 0);
	store->used -= st->st_size;
	store->count--;
	return 0;
}

int
filestore_delete(struct filestore *store, const char *id, size_t len,
    struct err *err)
{
	bool expired;
	struct stat st;

	if (!filestore_is_id(id, len) || !stat_file(store, id, &st))
		return err_set(err, ERR_NOT_FOUND, "no such file");
	expired = is_expired(store, used_ms(&st));
	if (remove_file(store, id, &st) < 0 && errno != ENOENT)
		return err_system(err, "remove a file of the store");
	return expired ? err_set(err, ERR_NOT_FOUND, "no such file") : 0;
}

int
filestore_list(struct filestore *store, struct filestore_entry **entries,
    size_t *count, struct err *err)
{
	DIR *folder = open_folder(store);
	const struct dirent *item;
	size_t cap = 0;
	struct stat st;

	*entries = NULL;
	*count = 0;
	if (folder == NULL)
		return err_system(err, "read the file store");
	while ((item = readdir(folder)) != NULL) {
		if (!filestore_is_id(item->d_name, strlen(item->d_name)) ||
		    !stat_file(store, item->d_name, &st) ||
		    is_expired(store, used_ms(&st)))
			continue;
		if (*count == cap) {
			cap = cap > 0 ? cap * 2 : 16;
			*entries = xrealloc(*entries, cap * sizeof(**entries));
		}
		fill_entry(store, item->d_name, &st, &(*entries)[(*count)++]);
	}
	(void)closedir(folder);
	return 0;
}

/* What begins with NEW: remove it when nobody holds it any more. */
static void
sweep_new(const struct filestore *store, const char *name)
{
	auto_close int fd = openat(store->dir, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return;
	if (used_ms(&st) + ORPHAN_MS <= clock_wall_ms())
		(void)unlinkat(store->dir, name, 0);
}

/* Metadata whose file is gone; the name is longer than an id. */
static void
sweep_meta(const struct filestore *store, const char *name,
    const struct stat *st)
{
	char id[FILESTORE_ID_LEN + 1] = "";
	struct stat file;

	memcpy(id, name, FILESTORE_ID_LEN);
	if (used_ms(st) + ORPHAN_MS <= clock_wall_ms() &&
	    filestore_is_id(id, strlen(id)) && !stat_file(store, id, &file))
		(void)unlinkat(store->dir, name, 0);
}

int64_t
filestore_sweep(struct filestore *store)
{
	DIR *folder = open_folder(store);
	const struct dirent *item;
	int64_t next = -1;
	struct stat st;

	if (folder == NULL)
		return -1;
	while ((item = readdir(folder)) != NULL) {
		const char *name = item->d_name;
		size_t len = strlen(name);
		int64_t due;

		if (!stat_file(store, name, &st))
			continue;
		due = used_ms(&st) + store->limits.ttl_ms;
		if (strncmp(name, NEW, strlen(NEW)) == 0)
			sweep_new(store, name);
		else if (len > FILESTORE_ID_LEN)
			sweep_meta(store, name, &st);
		else if (!filestore_is_id(name, len))
			continue;
		else if (due <= clock_wall_ms())
			(void)remove_file(store, name, &st);
		else if (next < 0 || due < next)
			next = due;
	}
	(void)closedir(folder);
	return next;
}
