/*
 * The store as a whole: its folder, and what is used of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
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
