/* SPDX-License-Identifier: MIT */
/*
 * A file as it comes: written aside, then put in its place.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <sodium.h>

#include "filestore_parts.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/text.h"

/* Each write asks the kernel twice. */
#define PIECE ((size_t)65536)
/* Space on the disk is kept in such steps, with some for the metadata. */
#define SPACE_STEP (INT64_C(8) << 20)
#define SPACE_MORE (INT64_C(64) << 10)

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

/* err tells of errno; a disk without room is a limit like others. */
static int
note_full_disk(struct err *err)
{
	if (errno == ENOSPC || errno == EDQUOT)
		err->code = ERR_LIMIT;
	return -1;
}

/* A file that is locked, which says to a sweeper that we live. */
static int
create(struct filestore_new *file, struct err *err)
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
		/* A sweeper may have been faster, and has counted it away. */
		if (fstat(file->fd, &st) < 0 || st.st_nlink > 0)
			return 0;
		cleanup_close(&file->fd);
		filestore_count(store->usage, file->id, 0, 1);
	}
}

/* What has been written is seen on the disk, so only the rest need be kept.
 * Whoever keeps it says nothing; what can be read is the end. */
static int
take_space(struct filestore_new *file, int64_t len, struct err *err)
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

/* Straight to the file, when share, store and disk have room. */
static int
write_out(struct filestore_new *file, const void *data, size_t len,
    struct err *err)
{
	if (filestore_reserve(file->store, file->id, (int64_t)len, 0, err) < 0)
		return -1;
	if (take_space(file, (int64_t)len, err) < 0) {
		filestore_count(file->store->usage, file->id, -(int64_t)len, 0);
		return -1;
	}
	file->size += (int64_t)len;
	return fd_write_all(file->fd, data, len, err) < 0 ?
	    note_full_disk(err) :
	    0;
}

/* Write what was gathered. */
static int
flush(struct filestore_new *file, struct err *err)
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
	if (len > PIECE - file->piece.len && flush(file, err) < 0)
		return -1;
	if (len >= PIECE)
		return write_out(file, data, len, err);
	buf_add(&file->piece, data, len);
	return 0;
}

int
filestore_restart(struct filestore_new *file, struct err *err)
{
	if (ftruncate(file->fd, 0) < 0 || lseek(file->fd, 0, SEEK_SET) < 0)
		return err_system(err, "empty a file in the store");
	filestore_count(file->store->usage, file->id, -file->size, 0);
	file->size = 0;
	buf_reset(&file->piece);
	return 0;
}

/* The end of a file as it came, in its place or not. */
static void
release(struct filestore_new *file)
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
	release(file);
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
	if (create(file, err) == 0 && take_space(file, 0, err) == 0)
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
	if (file->note[0] != '\0')
		buf_addf(&text, FILESTORE_META_NOTED "%s %s ", hex, file->note);
	else if (hex[0] != '-')
		buf_addf(&text, FILESTORE_META_OWNED "%s ", hex);
	else
		buf_adds(&text, FILESTORE_META_FREE);
	buf_addf(&text, "%lld\n", (long long)clock_wall_ms());
	buf_add(&text, name, strnlen(name, FILESTORE_NAME_MAX));
	fd = openat(file->store->dir,
	    filestore_name("", file->id, FILESTORE_META).s,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_system(err, "create metadata in the store");
	return fd_write_all(fd, buf_str(&text), text.len, err);
}

/* Metadata first: from its name on the file is there. */
int
filestore_commit(struct filestore_new *file, const char *name, struct err *err)
{
	int dir = file->store->dir;

	if (flush(file, err) < 0 || write_meta(file, name, err) < 0) {
		filestore_abort(file);
		return -1;
	}
	if (renameat(dir, filestore_name(FILESTORE_NEW, file->id, "").s, dir,
		file->id) < 0) {
		(void)err_system(err, "rename a file in the store");
		filestore_abort(file);
		return -1;
	}
	release(file);
	return 0;
}

int
filestore_detach(struct filestore_new *file, struct err *err)
{
	auto_close int fd = -1;

	if (flush(file, err) == 0) {
		fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
			(void)err_system(err, "a file of the store");
			cleanup_close(&fd);
		}
	}
	filestore_abort(file);
	return steal_fd(&fd);
}
