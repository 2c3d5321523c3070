/* SPDX-License-Identifier: MIT */
/*
 * A pass: files are taken in batches, whose parts are there to stay before the
 * first of their heads is written, and whose heads are gone before the first of
 * their parts is removed.  So whoever finds a head finds what it names.
 */
#include "copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/text.h"
#include "copy_compare.h"

#define BATCH 64

struct item {
	enum { ITEM_NOTHING, ITEM_PUT, ITEM_USED, ITEM_REMOVE } what;
	enum { HEAD_UNKNOWN, HEAD_NONE, HEAD_BAD, HEAD_GOOD } found;
	int64_t size;
	int64_t used_ms;
	uint32_t parts; /* bits: of REMOVE */
	struct copy_head head;
};

struct pass {
	struct store *store;
	struct copying *c;
	int64_t now_ms;
	int folder;	 /* -1: there is none */
	struct err left; /* the first of what is wrong with one file alone */
	unsigned char *part;
	size_t count;
	struct item items[BATCH];
};

/* ---- one file ---- */

/* The others are not held up. */
static void
leave(struct pass *p, struct item *item, const struct err *err)
{
	if (p->left.code == ERR_NONE)
		p->left = *err;
	item->what = ITEM_NOTHING;
}

static int
read_all(int fd, void *data, size_t len, off_t at, struct err *err)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = TEMP_FAILURE_RETRY(pread(fd, (char *)data + got,
		    len - got, at + (off_t)got));

		if (n < 0)
			return err_system(err, "read");
		if (n == 0)
			return err_set(err, ERR_SYSTEM, "it got shorter");
		got += (size_t)n;
	}
	return 0;
}

/* Before the file is opened: what removes both removes the file first. */
static void
read_note(const struct pass *p, struct copy_head *head)
{
	auto_free char *name = xprintf("%s.meta", head->id);
	auto_close int fd = openat(p->folder, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, head->note, sizeof(head->note));

	head->note_len = len < 0 ? 0 : (size_t)len;
}

/* -1: the store's; what is wrong with the file is left. */
static int
put_parts(struct pass *p, struct item *item, struct err *err)
{
	struct copy_head *head = &item->head;
	auto_close int fd = -1;
	char name[STORE_NAME_MAX];
	struct err own;
	struct stat st;

	read_note(p, head);
	fd = openat(p->folder, head->id,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > SNAPSHOT_FILE_MAX) {
		/* before 2026-11-24 they were for il-api alone */
		if (fd < 0 && errno == EACCES) {
			log_warn("may not be read, nor copied file=%s",
			    head->id);
		} else if (fd < 0 && errno != ENOENT && errno != ELOOP) {
			(void)err_system(&own, "read %s", head->id);
			leave(p, item, &own);
		}
		item->what = ITEM_NOTHING;
		return 0;
	}
	head->size = st.st_size;
	for (size_t i = 0; i < copy_parts(head->size); i++) {
		size_t len = copy_part_len(head->size, i);

		if (read_all(fd, p->part, len, (off_t)(i * COPY_PART), &own) !=
		    0) {
			(void)err_wrap(&own, "%s", head->id);
			leave(p, item, &own);
			return 0;
		}
		copy_hash(head->hashes[i], p->part, len);
		copy_part_name(head->id, i, name);
		if (p->store->put(p->store, name, p->part, len, err) != 0)
			return -1;
	}
	return 0;
}

static int
put_head(struct pass *p, const struct copy_head *head, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(COPY_HEAD_MAX);
	char name[STORE_NAME_MAX];

	copy_head_make(&text, head);
	copy_head_name(head->id, name);
	return p->store->put(p->store, name, text.data, text.len, err);
}

static int
remove_parts(struct pass *p, const struct item *item, struct err *err)
{
	char name[STORE_NAME_MAX];

	for (size_t i = 0; i <= COPY_DRAFT; i++) {
		if ((item->parts & (UINT32_C(1) << i)) == 0)
			continue;
		copy_part_name(item->head.id, i, name);
		if (p->store->remove(p->store, name, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- a batch ---- */

static int
on_head(void *arg, const void *data, size_t len, struct err *err)
{
	struct item *item = arg;
	char id[SNAPSHOT_FILE_LEN + 1];

	(void)err;
	memcpy(id, item->head.id, sizeof(id));
	if (data == NULL)
		item->found = HEAD_NONE;
	else if (copy_head_parse(&item->head, data, len, id))
		item->found = HEAD_GOOD;
	else
		item->found = HEAD_BAD;
	memcpy(item->head.id, id, sizeof(id));
	return 0;
}

/* The heads of which something has to be known.  One that is far too long ends
 * the requests beside it: these pass for damaged, too. */
static int
fetch_heads(struct pass *p, struct err *err)
{
	struct store *store = p->store;
	char name[STORE_NAME_MAX];
	struct err first = { 0 };
	struct err last = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->count; i++) {
		struct item *item = &p->items[i];

		if (item->what != ITEM_USED &&
		    (item->what != ITEM_REMOVE || item->parts != 0))
			continue;
		item->found = HEAD_BAD;
		copy_head_name(item->head.id, name);
		rc = store->fetch(store, name, COPY_HEAD_MAX, on_head, item,
		    &first);
	}
	if (store->wait(store, &last) != 0 && rc == 0)
		first = last;
	if (first.code == ERR_NONE || first.code == ERR_INPUT)
		return 0;
	*err = first;
	return -1;
}

/* What is to be done with what was found. */
static void
judge(struct item *item)
{
	if (item->what == ITEM_USED) {
		if (item->found != HEAD_GOOD || item->head.size != item->size)
			item->what = ITEM_PUT;
	} else if (item->what == ITEM_REMOVE && item->parts == 0) {
		if (item->found == HEAD_NONE)
			item->what = ITEM_NOTHING;
		else if (item->found == HEAD_GOOD)
			item->parts = copy_mask(item->head.size);
		else
			item->parts = copy_mask(SNAPSHOT_FILE_MAX);
	}
	item->head.used_ms = item->used_ms;
}

static int
step_first(struct pass *p, struct item *item, struct err *err)
{
	judge(item);
	return item->what == ITEM_PUT ? put_parts(p, item, err) : 0;
}

static int
step_heads(struct pass *p, struct item *item, struct err *err)
{
	char name[STORE_NAME_MAX];

	copy_head_name(item->head.id, name);
	switch (item->what) {
	case ITEM_NOTHING:
		return 0;
	case ITEM_PUT:
	case ITEM_USED:
		return put_head(p, &item->head, err);
	case ITEM_REMOVE:
		break;
	}
	return p->store->remove(p->store, name, err);
}

static int
step_last(struct pass *p, struct item *item, struct err *err)
{
	p->c->copied += item->what == ITEM_PUT;
	return item->what == ITEM_REMOVE ? remove_parts(p, item, err) : 0;
}

/* Each step is there to stay before the next one begins. */
static int
do_batch(struct pass *p, struct err *err)
{
	static int (*const steps[])(struct pass * p, struct item * item,
	    struct err * err) = { step_first, step_heads, step_last };

	if (fetch_heads(p, err) != 0)
		return -1;
	for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); step++) {
		for (size_t i = 0; i < p->count; i++)
			if (steps[step](p, &p->items[i], err) != 0)
				return -1;
		if (p->store->wait(p->store, err) != 0)
			return -1;
	}
	p->count = 0;
	return 0;
}

/* The next one; the batch is done where that fills it. */
static int
add(struct pass *p, const struct item *item, const char *id, struct err *err)
{
	struct item *next = &p->items[p->count++];

	*next = *item;
	memcpy(next->head.id, id, SNAPSHOT_FILE_LEN);
	return p->count == BATCH ? do_batch(p, err) : 0;
}

/* ---- all of them ---- */

/* A file that is there and may be copied. */
static bool
look_at(const struct pass *p, const char *id, struct item *item)
{
	struct stat st;

	if (p->folder < 0 ||
	    fstatat(p->folder, id, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISREG(st.st_mode))
		return false;
	item->size = st.st_size;
	item->used_ms = (int64_t)st.st_mtim.tv_sec * 1000 +
	    st.st_mtim.tv_nsec / 1000000;
	if (item->used_ms > p->now_ms)
		item->used_ms = p->now_ms;
	if (item->size <= SNAPSHOT_FILE_MAX)
		return item->used_ms + p->c->ttl_ms > p->now_ms;
	log_warn("too large to be copied file=%s", id);
	return false;
}

static bool
is_there(const struct pass *p, const char *id)
{
	struct stat st;

	return p->folder >= 0 &&
	    fstatat(p->folder, id, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The changes, in their order. */
static int
take_changes(struct pass *p, struct err *err)
{
	for (size_t i = 0; i < p->c->count; i++) {
		const struct copy_change *change = &p->c->changes[i];
		struct item item = { .what = ITEM_PUT };

		if (!look_at(p, change->id, &item)) {
			if (!change->gone || is_there(p, change->id))
				continue;
			item = (struct item){ .what = ITEM_REMOVE };
		}
		if (add(p, &item, change->id, err) != 0)
			return -1;
		if (p->count == 0)
			p->c->done = i + 1;
	}
	if (do_batch(p, err) != 0)
		return -1;
	p->c->done = p->c->count;
	return 0;
}

/* What of the folder is not there, or was used since. */
static int
compare_folder(struct pass *p, struct compared *there, struct err *err)
{
	int fd = p->folder < 0 ?
	    -1 :
	    openat(p->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (dir == NULL)
		return p->folder < 0 ? 0 : err_system(err, "%s", p->c->folder);
	while ((e = readdir(dir)) != NULL) {
		struct item item = { .what = ITEM_PUT };

		if (!text_is_uuid(e->d_name, strlen(e->d_name)) ||
		    !look_at(p, e->d_name, &item))
			continue;
		switch (compare_file(there, e->d_name, item.size, item.used_ms,
		    p->c->ttl_ms)) {
		case COMPARE_SAME:
			continue;
		case COMPARE_USED:
			item.what = ITEM_USED;
			break;
		case COMPARE_MISSING:
			break;
		}
		if (add(p, &item, e->d_name, err) != 0)
			return -1;
	}
	return do_batch(p, err);
}

/* What is past its time, whosever it was. */
static int
sweep(struct pass *p, const struct compared *there, struct err *err)
{
	const char *id;
	struct item item = { .what = ITEM_REMOVE };

	for (size_t at = 0; (id = compare_old(there, &at, p->now_ms,
				 p->c->ttl_ms, &item.parts)) != NULL;)
		if (add(p, &item, id, err) != 0)
			return -1;
	return do_batch(p, err);
}

static int
take_all(struct pass *p, struct err *err)
{
	struct compared there = { .count = 0 };
	int rc = compare_list(&there, p->store, err);

	if (rc == 0)
		rc = compare_folder(p, &there, err);
	if (rc == 0)
		rc = sweep(p, &there, err);
	compare_release(&there);
	return rc;
}

int
copy_pass(struct store *store, struct copying *c, struct err *err)
{
	auto_free struct pass *p = xcalloc(1, sizeof(*p));
	auto_free unsigned char *part = xmalloc(COPY_PART);
	auto_close int folder = open(c->folder,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0 && errno != ENOENT)
		return err_system(err, "%s", c->folder);
	p->store = store;
	p->c = c;
	p->now_ms = clock_wall_ms();
	p->folder = folder;
	p->part = part;
	if (take_changes(p, err) != 0 || (c->full && take_all(p, err) != 0))
		return -1;
	c->through = true;
	if (p->left.code == ERR_NONE)
		return 0;
	*err = p->left;
	return -1;
}
