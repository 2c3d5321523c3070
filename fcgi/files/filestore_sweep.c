/*
 * What is past its time, and what dead processes left, goes.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "filestore_parts.h"

#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"

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
	if (len > FILESTORE_ID_LEN) {
		sweep_meta(sweep->store, name, id);
	} else if (is_new) {
		sweep_new(sweep, name, &st);
	} else if (filestore_is_id(name, len)) {
		sweep_file(sweep, name, &st);
	}
}

/* Processes that died have left the count a little off.  It is made anew when
 * nobody changes anything: what goes on meanwhile would be in it twice, or not
 * at all. */
int64_t
filestore_sweep(struct filestore *store)
{
	struct sweep sweep = { .store = store, .next_ms = -1 };
	DIR *folder = filestore_open_folder(store);
	const struct dirent *item;
	bool alone;

	if (folder == NULL)
		return -1;
	alone = filestore_may_count(store);
	if (!alone)
		filestore_enter(store);
	while ((item = readdir(folder)) != NULL)
		sweep_entry(&sweep, item->d_name);
	(void)closedir(folder);
	if (alone) {
		filestore_count(store, sweep.bytes, sweep.files);
		filestore_counted(store);
	} else {
		filestore_leave(store);
	}
	return sweep.next_ms;
}
