/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/protocol/frame_limits.h"

/* What is there: a file, or a folder that a file needed. */
struct staged {
	const char *path; /* len bytes of it */
	size_t len;
	uint32_t hash;
	bool is_file;
};

void
stage_release(struct stage *stage)
{
	tdestroy(stage->tree, free);
}

/* Hashes first: paths of one folder have long beginnings in common. */
static int
compare(const void *a, const void *b)
{
	const struct staged *x = a;
	const struct staged *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->path, y->path, x->len);
}

/* The entry for the first len bytes of the path, made when it is not there;
 * NULL: there are too many. */
static const struct staged *
find(struct stage *stage, const char *path, size_t len, uint32_t hash,
    bool is_file)
{
	const struct staged key = { path, len, hash, is_file };
	struct staged *const *found = tfind(&key, &stage->tree, compare);
	struct staged *entry;

	if (stage->count == STAGE_ENTRIES_MAX)
		return NULL;
	if (found != NULL)
		return *found;
	entry = xmalloc(sizeof(*entry));
	*entry = key;
	if (tsearch(entry, &stage->tree, compare) == NULL)
		log_fatal(1, "out of memory");
	stage->count++;
	return entry;
}

/* Each folder above it, from the top, then the file. */
enum stage_outcome
stage_add(struct stage *stage, const char *path)
{
	uint32_t hash = 2166136261U; /* FNV-1a */
	const struct staged *entry;
	size_t len = 0;

	if (path[0] == '\0')
		return STAGE_EMPTY;
	for (size_t name = 0; path[len] != '\0'; len++) {
		name = path[len] == '/' ? 0 : name + 1;
		if (name > LIMIT_NAME || len == LIMIT_PATH)
			return STAGE_LONG;
	}
	for (size_t i = 0; i < len; i++) {
		if (path[i] == '/') {
			entry = find(stage, path, i, hash, false);
			if (entry == NULL)
				return STAGE_FULL;
			if (entry->is_file)
				return strchr(path + i + 1, '/') == NULL ?
				    STAGE_PARENT_IS_FILE :
				    STAGE_ABOVE_IS_FILE;
		}
		hash = (hash ^ (unsigned char)path[i]) * 16777619U;
	}
	entry = find(stage, path, len, hash, true);
	if (entry == NULL)
		return STAGE_FULL;
	return entry->is_file ? STAGE_FINE : STAGE_IS_FOLDER;
}

size_t
stage_resolve(const char *path, size_t len, char *out, size_t n, bool *up)
{
	for (size_t i = 0; i < len;) {
		const char *slash = memchr(path + i, '/', len - i);
		size_t part = (slash == NULL ? len : (size_t)(slash - path)) -
		    i;

		if (part == 2 && memcmp(path + i, "..", 2) == 0) {
			*up = true;
			while (n > 0 && out[n - 1] != '/')
				n--;
			n -= n > 0 ? 1 : 0;
		} else if (part > 1 || (part == 1 && path[i] != '.')) {
			if (n > 0)
				out[n++] = '/';
			memcpy(out + n, path + i, part);
			n += part;
		}
		i += part + 1;
	}
	out[n] = '\0';
	return n;
}
