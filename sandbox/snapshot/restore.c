/* SPDX-License-Identifier: MIT */
/*
 * A sandbox is restored in a draft beside the others, under a name that nobody
 * takes for a sandbox.  Each block is compared with its hash before it is
 * written; the draft gets the sandbox's name when all of it is there, and on
 * the disk.  Whose its files are is for the broker to see to.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/text.h"
#include "../volume/owner.h"
#include "object.h"
#include "task.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TRIES 3 /* while its home still saves it */
/* What the disk keeps, as the broker does (../broker/ledger.c). */
#define FLOOR_SHARE 50
#define FLOOR_LEAST ((uint64_t)256 << 20)

struct restoring {
	struct store *store;
	const char *from;
	struct manifest m;
	int fd;	     /* of the volume */
	bool absent; /* a block is */
	unsigned char data[MANIFEST_BLOCK];
};

/* One block on its way: several are at one time. */
struct wanted {
	struct restoring *r;
	const struct block *block;
};

static int
on_block(void *arg, const void *data, size_t len, struct err *err)
{
	struct wanted *wanted = arg;
	struct restoring *r = wanted->r;
	const struct block *block = wanted->block;

	if (data == NULL) {
		r->absent = true;
		return err_set(err, ERR_INPUT,
		    "the snapshot is damaged: a block is missing");
	}
	if (object_unpack(block, data, len, r->data, err) != 0)
		return -1;
	if (pwrite(r->fd, r->data, block->len, block->offset) !=
	    (ssize_t)block->len)
		return err_system(err, "write a block");
	return 0;
}

static int
fetch_blocks(struct restoring *r, const struct saved *file, struct err *err)
{
	struct wanted *wanted = xcalloc(file->count + 1, sizeof(*wanted));
	int rc = 0;
	struct err first;

	for (size_t i = 0; rc == 0 && i < file->count; i++) {
		char name[STORE_NAME_MAX];

		wanted[i] = (struct wanted){ r, &r->m.blocks[file->first + i] };
		object_block_name(r->from, wanted[i].block, name);
		rc = r->store->fetch(r->store, name, STORE_BLOCK_MAX, on_block,
		    &wanted[i], err);
	}
	/* nothing may be under way when they are freed */
	if (r->store->wait(r->store, rc == 0 ? err : &first) != 0)
		rc = -1;
	free(wanted);
	return rc;
}

/* Behind the sandbox's id, with which all of them begin (object.h). */
static const char *
own_name(const struct restoring *r, const struct saved *file)
{
	return file->name + strlen(r->from) + 1;
}

/* A volume, whole and on the disk. */
static int
fill_volume(struct restoring *r, int folder, const struct saved *file,
    struct err *err)
{
	const char *name = own_name(r, file);
	auto_close int fd = openat(folder, name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	r->fd = fd;
	if (fd < 0 || ftruncate(fd, file->size) != 0)
		return err_system(err, "make %s", name);
	if (fetch_blocks(r, file, err) != 0 || owner_disown(fd, err) != 0)
		return err_wrap(err, "%s", name);
	return fsync(fd) == 0 ? 0 : err_system(err, "keep %s", name);
}

/* ---- the draft ---- */

static int
remove_draft(int base, const char *draft, struct err *err)
{
	int fd = openat(base, draft, FOLDER);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_system(err, "open %s", draft);
	while (dir != NULL && (e = readdir(dir)) != NULL)
		(void)unlinkat(fd, e->d_name, 0);
	if (unlinkat(base, draft, AT_REMOVEDIR) != 0)
		return err_system(err, "remove %s", draft);
	return 0;
}

void
restore_sweep(int base)
{
	int fd = openat(base, ".", FOLDER);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct err err;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		if (strncmp(e->d_name, TASK_DRAFT_PREFIX,
			strlen(TASK_DRAFT_PREFIX)) == 0 &&
		    remove_draft(base, e->d_name, &err) != 0)
			log_warn("a draft stays: %s", err.text);
}

static int
write_mark(int folder, const char *from, int64_t seconds, struct err *err)
{
	auto_free char *text = xprintf("%s %" PRId64 "\n", from, seconds);
	auto_close int fd = openat(folder, TASK_MARK,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fd_write_all(fd, text, strlen(text), err) != 0 ||
	    fsync(fd) != 0)
		return err_system(err, "write " TASK_MARK);
	return 0;
}

bool
task_read_mark(int folder, char from[TASK_ID_SIZE], int64_t *seconds)
{
	auto_close int fd = openat(folder, TASK_MARK,
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[TASK_MARK_MAX] = "";
	char *end;

	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= TASK_ID_LEN ||
	    (end = strchr(text, '\n')) == NULL || text[TASK_ID_LEN] != ' ')
		return false;
	*end = '\0';
	text[TASK_ID_LEN] = '\0';
	memcpy(from, text, TASK_ID_SIZE);
	return task_is_id(from) &&
	    text_parse_int(text + TASK_ID_SIZE, 0, INT64_MAX, seconds);
}

static int
fill_draft(struct restoring *r, int base, const char *draft, struct err *err)
{
	auto_close int folder = -1;

	if (mkdirat(base, draft, 0700) != 0)
		return err_system(err, "make %s", draft);
	folder = openat(base, draft, FOLDER);
	if (folder < 0)
		return err_system(err, "open %s", draft);
	for (size_t i = 0; i < r->m.file_count; i++) {
		const struct saved *file = &r->m.files[i];

		if (*own_name(r, file) != '\0' &&
		    fill_volume(r, folder, file, err) != 0)
			return -1;
	}
	if (write_mark(folder, r->from, r->m.time, err) != 0)
		return -1;
	return fsync(folder) == 0 ? 0 : err_system(err, "keep %s", draft);
}

/* ---- all of it ---- */

static int
check_room(const struct restoring *r, int base, struct err *err)
{
	struct statvfs st;
	uint64_t needed = 0;
	uint64_t floor;

	for (size_t i = 0; i < r->m.block_count; i++)
		needed += r->m.blocks[i].len;
	if (fstatvfs(base, &st) != 0)
		return err_system(err, "ask for the disk's room");
	floor = st.f_blocks * st.f_frsize / FLOOR_SHARE;
	if (floor < FLOOR_LEAST)
		floor = FLOOR_LEAST;
	if (st.f_bavail * st.f_frsize < needed + floor)
		return err_set(err, ERR_LIMIT,
		    "the disk has no room for a sandbox of %s",
		    text_size((int64_t)needed).text);
	return 0;
}

/* Is there one already?  0: no; 1: it was made of that snapshot; -1: of
 * another, or anew. */
static int
is_there(int base, const char *from, const char *to, int64_t *seconds,
    struct err *err)
{
	auto_close int folder = openat(base, to, FOLDER);
	char marked[TASK_ID_SIZE];

	if (folder < 0)
		return errno == ENOENT ? 0 : err_system(err, "open %s", to);
	if (task_read_mark(folder, marked, seconds) &&
	    strcmp(marked, from) == 0)
		return 1;
	return err_set(err, ERR_CONFLICT,
	    "there is a sandbox %s, which was not made of that snapshot", to);
}

/* That there is none is believed only of a place where something is. */
static int
get_manifest(struct store *store, const char *from, struct manifest *m,
    struct err *err)
{
	int rc = object_get_manifest(store, from, m, err);

	return rc == 1 && !store->used ?
	    err_set(err, ERR_UNAVAILABLE,
		"nothing was ever saved where IL_SNAPSHOTS is: is it "
		"mounted?") :
	    rc;
}

/* One try: 0, 1, -1. */
static int
restore_once(struct restoring *r, int base, const char *to, int64_t *seconds,
    struct err *err)
{
	auto_free char *draft = xprintf(TASK_DRAFT_PREFIX "%s", to);
	int rc = get_manifest(r->store, r->from, &r->m, err);
	struct err left;

	if (rc != 0)
		return rc;
	if (check_room(r, base, err) != 0 ||
	    remove_draft(base, draft, err) != 0)
		return -1;
	rc = fill_draft(r, base, draft, err);
	if (rc == 0 && renameat2(base, draft, base, to, RENAME_NOREPLACE) != 0)
		rc = err_system(err, "name %s", to);
	if (rc != 0)
		(void)remove_draft(base, draft, &left);
	else if (fsync(base) != 0)
		rc = err_system(err, "keep %s", to);
	*seconds = r->m.time;
	return rc;
}

/* A block that is missing may have been one of a snapshot that its home has
 * just replaced. */
int
restore_sandbox(struct store *store, int base, const char *from, const char *to,
    int64_t *seconds, struct err *err)
{
	int rc = is_there(base, from, to, seconds, err);
	struct manifest m;
	struct err no;

	if (rc > 0)
		return 0;
	if (rc < 0 && err->code != ERR_CONFLICT)
		return -1;
	if (rc < 0) {
		/* who began anew, as there was none, is told so again */
		rc = get_manifest(store, from, &m, &no);
		manifest_release(&m);
		if (rc < 0 && no.code != ERR_INPUT)
			*err = no;
		return rc == 1 ? 1 : -1;
	}
	for (int i = 0; i < TRIES; i++) {
		struct restoring *r = xcalloc(1, sizeof(*r));
		bool absent;

		r->store = store;
		r->from = from;
		rc = restore_once(r, base, to, seconds, err);
		absent = r->absent;
		manifest_release(&r->m);
		free(r);
		if (rc >= 0 || !absent)
			break;
	}
	return rc;
}
