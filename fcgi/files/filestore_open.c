/* SPDX-License-Identifier: MIT */
/*
 * The store as a whole: its folder, what is used of it, and the sweep of what
 * is past its time or was left by dead processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "filestore_parts.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"

#define ROOM_AGAIN_MS 1000
/* Bytes of the file that is locked. */
#define LOCK_CHANGES 0
#define LOCK_OWNERS 1

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
set_lock(struct filestore *store, off_t which, int how, short type)
{
	struct flock lock = { .l_type = type,
		.l_whence = SEEK_SET,
		.l_start = which,
		.l_len = 1 };
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
		(void)set_lock(store, LOCK_CHANGES, F_SETLKW, F_RDLCK);
}

void
filestore_leave(struct filestore *store)
{
	if (--store->at_work == 0)
		(void)set_lock(store, LOCK_CHANGES, F_SETLK, F_UNLCK);
}

void
filestore_lock_owners(struct filestore *store)
{
	(void)set_lock(store, LOCK_OWNERS, F_SETLKW, F_WRLCK);
}

/* An owner who is added meanwhile has it, or has it not, on both sides. */
int
filestore_unlink(struct filestore *store, const char *name, const char *id,
    int64_t bytes)
{
	int result;
	int saved;

	(void)set_lock(store, LOCK_OWNERS, F_SETLKW, F_RDLCK);
	result = unlinkat(store->dir, name, 0);
	saved = errno;
	if (result == 0)
		filestore_account(store, id, -bytes, -1);
	filestore_unlock_owners(store);
	errno = saved;
	return result;
}

void
filestore_unlock_owners(struct filestore *store)
{
	(void)set_lock(store, LOCK_OWNERS, F_SETLK, F_UNLCK);
}

void
filestore_account(struct filestore *store, const char *id, int64_t bytes,
    int64_t files)
{
	filestore_add(store->usage, id, bytes, files);
}

void
filestore_count(struct filestore *store, const struct filestore_usage *there)
{
	struct filestore_usage *usage = store->usage;
	size_t count = 0;

	for (size_t i = 0; i < there->owner_count; i++)
		if (there->owners[i].files > 0)
			usage->owners[count++] = there->owners[i];
	__atomic_store_n(&usage->owner_count, count, __ATOMIC_RELEASE);
	__atomic_store_n(&usage->bytes, there->bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&usage->files, there->files, __ATOMIC_RELAXED);
}

void
filestore_usage(const struct filestore *store, int64_t *bytes, int64_t *files)
{
	*bytes = __atomic_load_n(&store->usage->bytes, __ATOMIC_RELAXED);
	*files = __atomic_load_n(&store->usage->files, __ATOMIC_RELAXED);
}

/* Account for it, and take that back where it is too much. */
static enum err_code
take(struct filestore *store, const char *id, int64_t bytes, int64_t files)
{
	enum err_code code = ERR_NONE;
	int64_t all_bytes;
	int64_t all_files;

	filestore_account(store, id, bytes, files);
	filestore_usage(store, &all_bytes, &all_files);
	if (!filestore_is_within_share(store, id))
		code = ERR_QUOTA;
	else if (all_bytes > store->limits.quota ||
	    all_files > store->limits.count_max)
		code = ERR_LIMIT;
	if (code != ERR_NONE)
		filestore_account(store, id, -bytes, -files);
	return code;
}

/* What has expired need not keep others out; but nobody is made to wait for a
 * sweep that cannot make room, and who is refused often does not make us sweep
 * as often. */
static bool
make_room(struct filestore *store)
{
	struct filestore_usage *usage = store->usage;
	int64_t *again = &usage->room_again_ms;
	int64_t before = __atomic_load_n(again, __ATOMIC_RELAXED);
	int64_t now = clock_monotonic_ms();
	int64_t took;

	if (now < before ||
	    clock_wall_ms() <
		__atomic_load_n(&usage->due_ms, __ATOMIC_RELAXED) ||
	    !__atomic_compare_exchange_n(again, &before, now + ROOM_AGAIN_MS,
		false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	(void)filestore_sweep(store);
	took = clock_monotonic_ms() - now;
	if (10 * took > ROOM_AGAIN_MS)
		__atomic_store_n(again, now + 10 * took, __ATOMIC_RELAXED);
	return true;
}

int
filestore_reserve(struct filestore *store, const char *id, int64_t bytes,
    int64_t files, struct err *err)
{
	enum err_code code = take(store, id, bytes, files);

	/* To make room may have forgotten an owner who has nothing. */
	if (code != ERR_NONE && make_room(store) &&
	    filestore_count_owner(store, err) == 0)
		code = take(store, id, bytes, files);
	if (code == ERR_QUOTA)
		return err_set(err, code, "its owner's share is used up");
	return code == ERR_NONE ? 0 :
				  err_set(err, code, "the file store is full");
}

/* ---- the sweep ---- */

/* One look at the folder. */
struct sweep {
	struct filestore *store;
	struct filestore_usage *there; /* what stays, what comes included */
	int64_t next_ms;
};

/* The data of a file that comes: remove it when nobody holds it any more. */
static void
sweep_new(struct sweep *sweep, const char *name, const char *id,
    const struct stat *st)
{
	struct filestore *store = sweep->store;
	auto_close int fd = openat(store->dir, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	    filestore_unlink(store, name, id, st->st_size) == 0)
		return;
	filestore_add(sweep->there, id, st->st_size, 1);
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
	if (!filestore_is_id(own, strlen(own)) ||
	    (id == name && filestore_stat(store, own, &st)))
		return; /* as nearly all are */
	if (!filestore_stat(store,
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
	filestore_add(sweep->there, id, st->st_size, 1);
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
		sweep_new(sweep, name, id, &st);
	else if (filestore_is_id(name, len))
		sweep_file(sweep, name, &st);
}

/* The owners that are counted, with nothing as yet. */
static struct filestore_usage *
same_owners(const struct filestore_usage *usage)
{
	struct filestore_usage *there = xcalloc(1, sizeof(*there));

	there->owner_count = __atomic_load_n(&usage->owner_count,
	    __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < there->owner_count; i++)
		memcpy(there->owners[i].tag, usage->owners[i].tag,
		    FILESTORE_TAG_LEN);
	return there;
}

/* Processes that died have left the count a little off.  It is made anew when
 * nobody changes anything: what goes on meanwhile would be in it twice, or not
 * at all. */
int64_t
filestore_sweep(struct filestore *store)
{
	struct sweep sweep = { .store = store, .next_ms = -1 };
	int64_t begun = clock_wall_ms();
	DIR *folder = filestore_open_folder(store);
	const struct dirent *item;
	bool alone;

	if (folder == NULL)
		return -1;
	alone = set_lock(store, LOCK_CHANGES, F_SETLK, F_WRLCK);
	if (!alone)
		filestore_enter(store);
	sweep.there = same_owners(store->usage);
	while ((item = readdir(folder)) != NULL)
		sweep_entry(&sweep, item->d_name);
	(void)closedir(folder);
	if (alone) {
		filestore_count(store, sweep.there);
		(void)set_lock(store, LOCK_CHANGES, F_SETLK,
		    store->at_work > 0 ? F_RDLCK : F_UNLCK);
	} else {
		filestore_leave(store);
	}
	/* What comes later, or is used, ends a whole time from now. */
	__atomic_store_n(&store->usage->due_ms,
	    sweep.next_ms >= 0 ? sweep.next_ms : begun + store->limits.ttl_ms,
	    __ATOMIC_RELAXED);
	free(sweep.there);
	return sweep.next_ms;
}
