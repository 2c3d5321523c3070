/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/text.h"
#include "object.h"
#include "task.h"

#define NAMES_MAX ((size_t)1 << 30)

struct sweep {
	const char *id;
	const struct block *needed;
	size_t count;
	bool all;
	struct buf names; /* a NUL after each */
};

/* A name of a block ends with its hash. */
static bool
is_needed(const struct sweep *sweep, const char *name)
{
	const char *hex = strrchr(name, '/') + 1;
	struct block block = { .offset = 0 };

	if (sweep->all || !store_is_name(name, sweep->id))
		return false;
	return !text_parse_hex(hex, strlen(hex), block.hash, MANIFEST_HASH) ||
	    blocks_have(sweep->needed, sweep->count, &block);
}

/* Gathered first: nothing is removed while it is listed. */
static void
on_name(void *arg, const char *name, int64_t seconds)
{
	struct sweep *sweep = arg;

	(void)seconds;
	if (!is_needed(sweep, name))
		buf_add(&sweep->names, name, strlen(name) + 1);
}

int
sweep_sandbox(struct store *store, const char *id,
    const struct manifest *needed, struct err *err)
{
	static const struct manifest none = { .time = 0 };
	auto_free struct block *sorted = blocks_sorted(needed != NULL ? needed :
									&none);
	struct sweep sweep = { .id = id,
		.needed = sorted,
		.count = needed != NULL ? needed->block_count : 0,
		.all = needed == NULL };
	int rc;

	buf_init(&sweep.names, NAMES_MAX);
	rc = store->list(store, id, on_name, &sweep, err);
	for (size_t at = 0; rc == 0 && at < sweep.names.len;
	     at += strlen(sweep.names.data + at) + 1)
		rc = store->remove(store, sweep.names.data + at, err);
	buf_release(&sweep.names);
	return rc == 0 ? store->wait(store, err) : -1;
}

/* The manifest first: without it there is no snapshot. */
int
forget_sandbox(struct store *store, const char *id, struct err *err)
{
	char name[STORE_NAME_MAX];

	object_manifest_name(id, name);
	if (store->remove(store, name, err) != 0 ||
	    store->wait(store, err) != 0)
		return -1;
	return sweep_sandbox(store, id, NULL, err);
}
