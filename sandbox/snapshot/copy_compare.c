/* SPDX-License-Identifier: MIT */
#include "copy_compare.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/err.h"
#include "../base/text.h"
#include "copy_head.h"
#include "store.h"

#define REMOTES_MAX ((size_t)1 << 20)

struct remote {
	char id[SNAPSHOT_FILE_LEN + 1];
	bool here;
	bool head;
	uint32_t parts; /* bits */
	int64_t head_s; /* when it was written; 0: not known */
	int64_t last_s; /* the last of its objects; INT64_MAX: not known */
};

uint32_t
copy_mask(int64_t size)
{
	return (UINT32_C(1) << copy_parts(size)) - 1;
}

static void
take_part(struct remote *remote, const char *last, int64_t seconds)
{
	char name[STORE_NAME_MAX];

	if (strcmp(last, "head") == 0) {
		remote->head = true;
		remote->head_s = seconds;
	}
	for (size_t i = 0; i <= COPY_DRAFT; i++) {
		copy_part_name(remote->id, i, name);
		if (strcmp(strrchr(name, '/') + 1, last) == 0)
			remote->parts |= UINT32_C(1) << i;
	}
	if (seconds == 0)
		seconds = INT64_MAX;
	if (remote->last_s < seconds)
		remote->last_s = seconds;
}

/* Those of one file stand together in a list. */
static struct remote *
entry_of(struct compared *there, const char *id)
{
	struct remote next = { .head = false };

	if (there->count > 0 &&
	    strncmp(there->remotes[there->count - 1].id, id,
		SNAPSHOT_FILE_LEN) == 0)
		return &there->remotes[there->count - 1];
	if (there->remotes == NULL || there->count == there->room) {
		there->room = there->room == 0 ? 64 : 2 * there->room;
		there->remotes = xrealloc(there->remotes,
		    there->room * sizeof(next));
	}
	memcpy(next.id, id, SNAPSHOT_FILE_LEN);
	there->remotes[there->count] = next;
	return &there->remotes[there->count++];
}

static void
on_object(void *arg, const char *name, int64_t seconds)
{
	struct compared *there = arg;
	const char *id = name + strlen(STORE_FILES "/");

	if (strlen(name) < strlen(STORE_FILES "/") + SNAPSHOT_FILE_LEN + 2 ||
	    !text_is_uuid(id, SNAPSHOT_FILE_LEN) ||
	    id[SNAPSHOT_FILE_LEN] != '/' || there->count > REMOTES_MAX)
		return;
	take_part(entry_of(there, id), id + SNAPSHOT_FILE_LEN + 1, seconds);
}

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct remote *)a)->id,
	    ((const struct remote *)b)->id);
}

int
compare_list(struct compared *there, struct store *store, struct err *err)
{
	if (store->list(store, STORE_FILES, on_object, there, err) != 0)
		return -1;
	if (there->count > REMOTES_MAX)
		return err_set(err, ERR_LIMIT, "more copies than there can be");
	if (there->count > 0)
		qsort(there->remotes, there->count, sizeof(*there->remotes),
		    by_id);
	return 0;
}

void
compare_release(struct compared *there)
{
	free(there->remotes);
}

enum compare
compare_file(struct compared *there, const char *id, int64_t size,
    int64_t used_ms, int64_t ttl_ms)
{
	struct remote key = { .head = false };
	struct remote *remote = NULL;

	memcpy(key.id, id, SNAPSHOT_FILE_LEN);
	if (there->count > 0)
		remote = bsearch(&key, there->remotes, there->count,
		    sizeof(key), by_id);
	if (remote == NULL)
		return COMPARE_MISSING;
	remote->here = true;
	if (!remote->head ||
	    (remote->parts & copy_mask(SNAPSHOT_FILE_MAX)) != copy_mask(size))
		return COMPARE_MISSING;
	return used_ms - remote->head_s * 1000 > ttl_ms / 4 ? COMPARE_USED :
							      COMPARE_SAME;
}

const char *
compare_old(const struct compared *there, size_t *at, int64_t now_ms,
    int64_t ttl_ms, uint32_t *parts)
{
	int64_t old_s = (now_ms - ttl_ms - COPY_CLOCKS_MS) / 1000;

	while (*at < there->count) {
		const struct remote *remote = &there->remotes[(*at)++];
		bool known = remote->head_s != 0 || !remote->head;

		if (remote->here || !known ||
		    (remote->head ? remote->head_s : remote->last_s) >= old_s)
			continue;
		*parts = remote->parts;
		return remote->id;
	}
	return NULL;
}
