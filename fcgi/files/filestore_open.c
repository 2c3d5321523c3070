/* SPDX-License-Identifier: MIT */
/*
 * The store as a whole: its folder, what is used of it, and the sweep of what
 * is past its time or was left by dead processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "filestore_parts.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"

#define ROOM_AGAIN_MS 1000

/* Usage is counted by all processes that are forked after this. */
int
filestore_open(struct filestore *store, const char *path,
    const struct filestore_limits *limits, struct err *err)
{
	void *memory;

	*store = (struct filestore){ .dir = -1, .lock = -1, .limits = *limits };
	if (fd_make_dirs(path, 0700, err) < 0)
		return -1;
	memory = mmap(NULL, sizeof(*store->usage), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return err_system(err, "memory for the file store");
	store->usage = memory;
	store->lock = memfd_create("file-store", MFD_CLOEXEC);
	store->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dir < 0 || store->lock < 0) {
		(void)err_system(err, "open %s", path);
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
	cleanup_close(&store->dir);
	cleanup_close(&store->lock);
	*store = (struct filestore){ .dir = -1, .lock = -1 };
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

void
filestore_account(struct filestore *store, int64_t bytes, int64_t files)
{
	(void)__atomic_fetch_add(&store->usage->bytes, bytes, __ATOMIC_RELAXED);
	(void)__atomic_fetch_add(&store->usage->files, files, __ATOMIC_RELAXED);
}

void
filestore_usage(const struct filestore *store, int64_t *bytes, int64_t *files)
{
	*bytes = __atomic_load_n(&store->usage->bytes, __ATOMIC_RELAXED);
	*files = __atomic_load_n(&store->usage->files, __ATOMIC_RELAXED);
}

/* Account for it, and take that back where it is too much. */
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

/* ---- the sweep ---- */

/* One look at the folder. */
struct sweep {
	struct filestore *store;
	int64_t bytes; /* of what stays, files that come included */
	int64_t files;
	int64_t next_ms;
};

/* The data of a file that comes: remove it when nobody holds it any more. */
static void
sweep_new(struct sweep *sweep, const char *name, const struct stat *st)
{
	struct filestore *store = sweep->store;
	auto_close int fd = openat(store->dir, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	    unlinkat(store->dir, name, 0) == 0) {
		filestore_account(store, -(int64_t)st->st_size, -1);
		return;
	}
	sweep->bytes += st->st_size;
	sweep->files++;
}

/* Metadata, whose file may be on its way; `id` is followed by more.  In this
 * order, since a file that comes gets its last name after its metadata. */
static void
sweep_meta(const struct filestore *store, const char *name, const char *id)
{
	char own[FILESTORE_ID_LEN + 1] = "";
	char coming[FILESTORE_NAME_SIZE];
	struct stat st;

	memcpy(own, id, FILESTORE_ID_LEN);
	if (filestore_is_id(own, strlen(own)) &&
	    !filestore_stat(store,
		filestore_make_name(coming, FILESTORE_NEW, own, ""), &st) &&
	    (id != name || !filestore_stat(store, own, &st)))
		(void)unlinkat(store->dir, name, 0);
}

/* A file that is there. */
static void
sweep_file(struct sweep *sweep, const char *id, const struct stat *st)
{
	struct filestore *store = sweep->store;
	int64_t due = filestore_used_ms(st) + store->limits.ttl_ms;

	if (due <= clock_wall_ms() && filestore_remove(store, id, st) == 0)
		return;
	sweep->bytes += st->st_size;
	sweep->files++;
	if (sweep->next_ms < 0 || due < sweep->next_ms)
		sweep->next_ms = due;
}

/* Whatever a name stands for. */
static void
sweep_entry(struct sweep *sweep, const char *name)
{
	static const size_t new_len = sizeof(FILESTORE_NEW) - 1;
	bool is_new = strncmp(name, FILESTORE_NEW, new_len) == 0;
	const char *id = is_new ? name + new_len : name;
	size_t len = strlen(id);
	struct stat st;

	if (!filestore_stat(sweep->store, name, &st))
		return;
	if (len > FILESTORE_ID_LEN)
		sweep_meta(sweep->store, name, id);
	else if (is_new)
		sweep_new(sweep, name, &st);
	else if (filestore_is_id(name, len))
		sweep_file(sweep, name, &st);
}

/* Processes that died have left the count a little off.  It is made anew when
 * nobody changes anything: what goes on meanwhile would be in it twice, or not
 * at all. */
int64_t
filestore_sweep(struct filestore *store)
{
	struct sweep sweep = { .store = store, .next_ms = -1 };
	struct filestore_usage *usage = store->usage;
	DIR *folder = filestore_open_folder(store);
	const struct dirent *item;
	bool alone;

	if (folder == NULL)
		return -1;
	alone = set_lock(store, F_SETLK, F_WRLCK);
	if (!alone)
		filestore_enter(store);
	while ((item = readdir(folder)) != NULL)
		sweep_entry(&sweep, item->d_name);
	(void)closedir(folder);
	if (alone) {
		__atomic_store_n(&usage->bytes, sweep.bytes, __ATOMIC_RELAXED);
		__atomic_store_n(&usage->files, sweep.files, __ATOMIC_RELAXED);
		(void)set_lock(store, F_SETLK,
		    store->at_work > 0 ? F_RDLCK : F_UNLCK);
	} else {
		filestore_leave(store);
	}
	return sweep.next_ms;
}
