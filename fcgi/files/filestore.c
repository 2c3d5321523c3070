/* SPDX-License-Identifier: MIT */
/*
 * The folder of the store: its names, the files that are there, and the sweep
 * of those that are past their time or that dead processes left.  A file that
 * comes is written aside, then put in its place.
 */
#include "files/filestore.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

#define FILESTORE_NEW "new-"
#define FILESTORE_META ".meta"
#define FILESTORE_META_MAX (256 + FILESTORE_NAME_MAX)
/* Writes are gathered, since each asks the kernel twice. */
#define PIECE ((size_t)65536)
/* Space on the disk is kept in such steps, with some for the metadata. */
#define SPACE_STEP (INT64_C(8) << 20)
#define SPACE_MORE (INT64_C(64) << 10)

/* Usage is counted by all processes that are forked after this. */
int
filestore_open(struct filestore *store, const char *path,
    const struct filestore_limits *limits, struct err *err)
{
	*store = (struct filestore){ .dir = -1, .lock = -1, .limits = *limits };
	if (fd_make_dirs(path, 0700, err) < 0)
		return -1;
	store->usage = shared_file_open(NULL,
	    sizeof(*store->usage) +
		FILESTORE_OWNERS * sizeof(store->usage->owners[0]),
	    err);
	if (store->usage == NULL)
		return -1;
	store->lock = memfd_create("file-store", MFD_CLOEXEC);
	store->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dir < 0 || store->lock < 0)
		return err_system(err, "open %s", path);
	(void)filestore_sweep(store);
	return 0;
}

/* ---- names and the folder ---- */

struct filestore_name {
	char s[sizeof(FILESTORE_NEW) + FILESTORE_ID_LEN +
	    sizeof(FILESTORE_META)];
};

/* A name, for the expression that it stands in. */
static struct filestore_name
filestore_name(const char *before, const char *id, const char *after)
{
	struct filestore_name name;

	(void)snprintf(name.s, sizeof(name.s), "%s%s%s", before, id, after);
	return name;
}

/* The name without the prefix of a new file. */
static const char *
skip_new(const char *name)
{
	size_t len = strlen(FILESTORE_NEW);

	return strncmp(name, FILESTORE_NEW, len) == 0 ? name + len : name;
}

const char *
filestore_data_id(const char *name)
{
	const char *id = skip_new(name);

	return text_is_uuid(id, strlen(id)) ? id : NULL;
}

/* A stream with a position of its own. */
DIR *
filestore_open_folder(const struct filestore *store, struct err *err)
{
	int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (folder != NULL)
		return folder;
	(void)err_system(err, "read the file store");
	cleanup_close(&fd);
	return NULL;
}

bool
filestore_stat(const struct filestore *store, const char *name, struct stat *st)
{
	return fstatat(store->dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st->st_mode);
}

/* When it was used last, in wall clock milliseconds. */
static int64_t
used_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 +
	    st->st_mtim.tv_nsec / 1000000;
}

/* A file that is there, with its metadata; -1: errno. */
static int
remove_file(struct filestore *store, const char *id, const struct stat *st)
{
	if (filestore_unlink(store, id, id, st->st_size) < 0)
		return -1;
	(void)unlinkat(store->dir, filestore_name("", id, FILESTORE_META).s, 0);
	return 0;
}

/* ---- files that are there ---- */

/* Parse the first line of the metadata: "1 TIME" of nobody's file, "2 OWNER
 * TIME", or "3 OWNER NOTE TIME", as all new ones are; nobody is "-". */
static bool
filestore_parse_head(struct filestore_entry *entry, char *line)
{
	const char *words[4] = { "" };
	size_t count = 0;

	while (line != NULL && count < 4)
		words[count++] = strsep(&line, " ");
	if (line != NULL || count < 2 || strlen(words[0]) != 1 ||
	    (size_t)(words[0][0] - '0') != count - 1)
		return false;
	if (count > 2 && strcmp(words[1], "-") != 0 &&
	    !text_parse_hex(words[1], strlen(words[1]), entry->owner,
		sizeof(entry->owner)))
		return false;
	if (count > 3 && strlen(words[2]) > FILESTORE_NOTE_MAX)
		return false;
	(void)snprintf(entry->note, sizeof(entry->note), "%s",
	    count > 3 ? words[2] : "");
	return text_parse_int(words[count - 1], 0, INT64_MAX,
	    &entry->uploaded_ms);
}

/* Fill an entry with what its metadata says; its name is to be freed.  Without
 * metadata the name is made up, and the time stays.  False: the file is not the
 * store's owner's, and there is nothing to free. */
static bool
read_meta(const struct filestore *store, struct filestore_entry *entry)
{
	auto_free char *text = xmalloc(FILESTORE_META_MAX + 1);
	auto_close int fd = -1;
	ssize_t len = -1;
	char *line;

	fd = openat(store->dir, filestore_name("", entry->id, FILESTORE_META).s,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		len = read(fd, text, FILESTORE_META_MAX);
	text[len > 0 ? len : 0] = '\0';
	line = strchr(text, '\n');
	if (line != NULL)
		*line = '\0';
	entry->name = xstrdup(line != NULL &&
		    filestore_parse_head(entry, text) ?
		line + 1 :
		"unnamed");
	if (store->owner == NULL ||
	    sodium_memcmp(entry->owner, store->owner, FILESTORE_OWNER_LEN) == 0)
		return true;
	free(entry->name);
	return false;
}

/* May a file that is there be used?  If so, fills the entry; NULL: just the
 * answer. */
static bool
filestore_load(const struct filestore *store, const char *id,
    const struct stat *st, struct filestore_entry *entry)
{
	struct filestore_entry own = { .size = st->st_size,
		.uploaded_ms = used_ms(st) };

	if (own.uploaded_ms + store->limits.ttl_ms <= clock_wall_ms())
		return false;
	if (entry == NULL && store->owner == NULL)
		return true;
	(void)snprintf(own.id, sizeof(own.id), "%s", id);
	if (!read_meta(store, &own))
		return false;
	if (entry != NULL)
		*entry = own;
	else
		free(own.name);
	return true;
}

int
filestore_get(struct filestore *store, const char *id, size_t len,
    struct filestore_entry *entry, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (!text_is_uuid(id, len))
		return err_set(err, ERR_NOT_FOUND, "not an id of a file");
	fd = openat(store->dir, id,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT && errno != ELOOP)
		return err_system(err, "open a file of the store");
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !filestore_load(store, id, &st, entry))
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

	if (!text_is_uuid(id, len) || !filestore_stat(store, id, &st) ||
	    !filestore_load(store, id, &st, NULL))
		return err_set(err, ERR_NOT_FOUND, "no such file");
	filestore_enter(store);
	if (remove_file(store, id, &st) < 0 && errno != ENOENT)
		result = err_system(err, "remove a file of the store");
	filestore_leave(store);
	return result;
}

bool
filestore_next(const struct filestore *store, DIR *folder,
    struct filestore_entry *entry)
{
	const struct dirent *item;
	struct stat st;

	while ((item = readdir(folder)) != NULL)
		if (text_is_uuid(item->d_name, strlen(item->d_name)) &&
		    filestore_stat(store, item->d_name, &st) &&
		    filestore_load(store, item->d_name, &st, entry))
			return true;
	return false;
}

/* ---- the sweep ---- */

/* Remove data past its time, or an incoming file whose writer has died.  False:
 * it stays. */
static bool
sweep_data(struct filestore *store, const char *name, const char *id,
    const struct stat *st)
{
	auto_close int fd = -1;

	if (id == name)
		return used_ms(st) + store->limits.ttl_ms <= clock_wall_ms() &&
		    remove_file(store, id, st) == 0;
	fd = openat(store->dir, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	    filestore_unlink(store, name, id, st->st_size) == 0;
}

/* Remove metadata without a file.  The order of the checks matters: a file that
 * comes gets its last name after its metadata. */
static void
sweep_meta(const struct filestore *store, const char *name)
{
	char id[FILESTORE_ID_LEN + 1];
	struct stat st;

	(void)snprintf(id, sizeof(id), "%.*s", FILESTORE_ID_LEN,
	    skip_new(name));
	if (text_is_uuid(id, strlen(id)) && filestore_stat(store, name, &st) &&
	    !filestore_stat(store, id, &st) &&
	    !filestore_stat(store, filestore_name(FILESTORE_NEW, id, "").s,
		&st) &&
	    !filestore_stat(store, id, &st))
		(void)unlinkat(store->dir, name, 0);
}

/* A copy of the senders' rows, with nothing counted yet. */
static struct filestore_usage *
same_owners(const struct filestore_usage *usage)
{
	size_t count = usage->owner_count;
	struct filestore_usage *there = xcalloc(1,
	    sizeof(*there) + count * sizeof(there->owners[0]));

	there->owner_count = count;
	for (size_t i = 0; i < count; i++)
		memcpy(there->owners[i].tag, usage->owners[i].tag,
		    FILESTORE_TAG_LEN);
	return there;
}

/* Replace the count by the one that the sweep has made.  Rows of senders
 * without files are removed. */
static void
replace_count(struct filestore_usage *usage,
    const struct filestore_usage *there)
{
	size_t count = 0;

	for (size_t i = 0; i < there->owner_count; i++)
		if (there->owners[i].files > 0)
			usage->owners[count++] = there->owners[i];
	usage->owner_count = count;
	usage->bytes = there->bytes;
	usage->files = there->files;
}

/* Processes that died have left the count a little off.  The sweep counts anew
 * only while no other process changes the folder: such a change could be
 * counted twice, or not at all. */
int64_t
filestore_sweep(struct filestore *store)
{
	int64_t none = clock_wall_ms() + store->limits.ttl_ms;
	int64_t next = INT64_MAX;
	struct err err;
	auto_dir DIR *folder = filestore_open_folder(store, &err);
	/* Usage after the sweep, incoming files included. */
	auto_free struct filestore_usage *there = NULL;
	const struct dirent *item;
	struct stat st;
	bool alone;

	if (folder == NULL)
		return -1;
	alone = filestore_lock(store, FILESTORE_LOCK_CHANGES, F_WRLCK, false);
	if (!alone)
		filestore_enter(store);
	there = same_owners(store->usage);
	while ((item = readdir(folder)) != NULL) {
		const char *name = item->d_name;
		const char *id = filestore_data_id(name);
		int64_t due;

		if (id == NULL)
			sweep_meta(store, name);
		if (id == NULL || !filestore_stat(store, name, &st) ||
		    sweep_data(store, name, id, &st))
			continue;
		filestore_count(there, id, st.st_size, 1);
		due = used_ms(&st) + store->limits.ttl_ms;
		if (id == name && due < next)
			next = due;
	}
	if (alone) {
		replace_count(store->usage, there);
		(void)filestore_lock(store, FILESTORE_LOCK_CHANGES,
		    store->at_work > 0 ? F_RDLCK : F_UNLCK, false);
	} else {
		filestore_leave(store);
	}
	/* A file that is stored or used from now on stays for a whole TTL. */
	store->usage->due_ms = next < INT64_MAX ? next : none;
	return next < INT64_MAX ? next : -1;
}

/* ---- a file as it comes ---- */

/* A UUID of version 4, its first digits the sender's, its last the node's. */
static void
make_id(const struct filestore *store, char id[FILESTORE_ID_LEN + 1])
{
	char hex[32 + 1];
	char tag[FILESTORE_TAG_LEN + 1];

	text_random_hex(hex, sizeof(hex) - 1);
	hex[12] = '4';
	hex[16] = "89ab"[randombytes_uniform(4)];
	filestore_tag(store, tag);
	/* without a sender it is empty */
	for (size_t i = 0; tag[i] != '\0'; i++)
		hex[i] = tag[i];
	if (store->node != NULL)
		memcpy(hex + sizeof(hex) - 1 - FILESTORE_NODE_LEN, store->node,
		    FILESTORE_NODE_LEN);
	(void)snprintf(id, FILESTORE_ID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s",
	    hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

/* A full disk is a limit like others; err has the text of errno already. */
static int
note_full_disk(struct err *err)
{
	if (errno == ENOSPC || errno == EDQUOT)
		err->code = ERR_LIMIT;
	return -1;
}

/* Create the file.  Its lock tells a sweeper that its process lives. */
static int
filestore_create(struct filestore_new *file, struct err *err)
{
	struct filestore *store = file->store;
	struct stat st;

	for (;;) {
		file->fd = openat(store->dir,
		    filestore_name(FILESTORE_NEW, file->id, "").s,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (file->fd < 0) {
			(void)err_system(err, "create a file in the store");
			return note_full_disk(err);
		}
		(void)TEMP_FAILURE_RETRY(flock(file->fd, LOCK_EX));
		/* A sweeper may have removed it before, and counted that. */
		if (fstat(file->fd, &st) < 0 || st.st_nlink > 0)
			return 0;
		cleanup_close(&file->fd);
		filestore_count(store->usage, file->id, 0, 1);
	}
}

/* Reserve space on the disk for len more bytes.  Written bytes show on the
 * disk, so only the rest is reserved.  The descriptor carries no data; when it
 * becomes readable, the reservation is lost. */
static int
reserve_space(struct filestore_new *file, int64_t len, struct err *err)
{
	struct filestore *store = file->store;
	struct pollfd end = { .fd = file->space_fd, .events = POLLIN };
	int64_t bytes = len > SPACE_STEP ? len : SPACE_STEP;

	if (store->keep_space == NULL)
		return 0;
	if (file->space < len || end.fd < 0 || poll(&end, 1, 0) != 0) {
		end.fd = store->keep_space(store->keep_arg, bytes + SPACE_MORE,
		    err);
		if (end.fd < 0)
			return -1;
		cleanup_close(&file->space_fd);
		file->space_fd = end.fd;
		file->space = bytes;
	}
	file->space -= len;
	return 0;
}

/* Write to the file, if share, store and disk have room. */
static int
write_out(struct filestore_new *file, const void *data, size_t len,
    struct err *err)
{
	if (filestore_reserve(file->store, file->id, (int64_t)len, 0, err) < 0)
		return -1;
	if (reserve_space(file, (int64_t)len, err) < 0) {
		filestore_count(file->store->usage, file->id, -(int64_t)len, 0);
		return -1;
	}
	file->size += (int64_t)len;
	return fd_write_all(file->fd, data, len, err) < 0 ?
	    note_full_disk(err) :
	    0;
}

/* Write the gathered bytes. */
static int
filestore_flush(struct filestore_new *file, struct err *err)
{
	size_t len = file->piece.len;
	int result = len == 0 ? 0 : write_out(file, file->piece.data, len, err);

	buf_reset(&file->piece);
	return result;
}

int
filestore_write(struct filestore_new *file, const void *data, size_t len,
    struct err *err)
{
	if (len > PIECE - file->piece.len && filestore_flush(file, err) < 0)
		return -1;
	if (len >= PIECE)
		return write_out(file, data, len, err);
	buf_add(&file->piece, data, len);
	return 0;
}

/* End an incoming file, whether it has its place or not. */
static void
filestore_release(struct filestore_new *file)
{
	cleanup_close(&file->fd);
	cleanup_close(&file->space_fd);
	buf_release(&file->piece);
	filestore_leave(file->store);
	file->store = NULL;
}

void
filestore_abort(struct filestore_new *file)
{
	if (file->store == NULL)
		return;
	(void)unlinkat(file->store->dir,
	    filestore_name(FILESTORE_NEW, file->id, "").s, 0);
	(void)unlinkat(file->store->dir,
	    filestore_name("", file->id, FILESTORE_META).s, 0);
	filestore_count(file->store->usage, file->id, -file->size, -1);
	filestore_release(file);
}

int
filestore_begin(struct filestore *store, struct filestore_new *file,
    struct err *err)
{
	*file = (struct filestore_new){
		.fd = -1, .space_fd = -1, .piece = BUF_INIT(PIECE)
	};
	make_id(store, file->id);
	filestore_enter(store);
	if (filestore_add_owner(store, err) < 0 ||
	    filestore_reserve(store, file->id, 0, 1, err) < 0) {
		filestore_leave(store);
		return -1;
	}
	file->store = store;
	if (filestore_create(file, err) == 0 &&
	    reserve_space(file, 0, err) == 0)
		return 0;
	filestore_abort(file);
	return -1;
}

/* Write "<id>.meta", which means nothing as long as "<id>" is not there. */
static int
write_meta(const struct filestore_new *file, const char *name, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(FILESTORE_META_MAX);
	auto_close int fd = -1;
	char hex[2 * FILESTORE_OWNER_LEN + 1] = "-";

	if (filestore_is_owned(file->store))
		(void)sodium_bin2hex(hex, sizeof(hex), file->store->owner,
		    FILESTORE_OWNER_LEN);
	buf_addf(&text, "3 %s %s %lld\n", hex, file->note,
	    (long long)clock_wall_ms());
	buf_add(&text, name, strnlen(name, FILESTORE_NAME_MAX));
	fd = openat(file->store->dir,
	    filestore_name("", file->id, FILESTORE_META).s,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_system(err, "create metadata in the store");
	return fd_write_all(fd, buf_str(&text), text.len, err);
}

/* Metadata is written first: the file is there from its renaming on. */
int
filestore_commit(struct filestore_new *file, const char *name, struct err *err)
{
	int dir = file->store->dir;

	if (filestore_flush(file, err) < 0 || write_meta(file, name, err) < 0) {
		filestore_abort(file);
		return -1;
	}
	if (renameat(dir, filestore_name(FILESTORE_NEW, file->id, "").s, dir,
		file->id) < 0) {
		(void)err_system(err, "rename a file in the store");
		filestore_abort(file);
		return -1;
	}
	filestore_release(file);
	return 0;
}

int
filestore_detach(struct filestore_new *file, struct err *err)
{
	auto_close int fd = -1;

	if (filestore_flush(file, err) == 0) {
		fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
			(void)err_system(err, "a file of the store");
			cleanup_close(&fd);
		}
	}
	filestore_abort(file);
	return steal_fd(&fd);
}
