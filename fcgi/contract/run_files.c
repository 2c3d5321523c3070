/* SPDX-License-Identifier: MIT */
#include "contract/run_files.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "protocol/cell.h"
#include "protocol/frame_limits.h"

/* "%FF" is the longest text of a byte. */
#define TEXT_MAX (3 * LIMIT_NAME)

struct run_file *
run_files_add(struct run_files *files, const char *path, int64_t size,
    const char *why)
{
	struct run_file *file;

	files->items = xrealloc(files->items,
	    (files->count + 1) * sizeof(*files->items));
	file = &files->items[files->count++];
	*file = (struct run_file){ .path = xstrdup(path),
		.size = size,
		.why = why,
		.content = BUF_INIT((size_t)size) };
	return file;
}

/* In UTF-8 the order of bytes is that of code points. */
static int
compare_files(const void *a, const void *b)
{
	const struct run_file *x = a;
	const struct run_file *y = b;

	return strcmp(x->path, y->path);
}

void
run_files_sort(struct run_files *files)
{
	if (files->count > 1)
		qsort(files->items, files->count, sizeof(*files->items),
		    compare_files);
}

void
run_files_release(struct run_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free((void *)(uintptr_t)files->items[i].path);
		free((void *)(uintptr_t)files->items[i].id);
		buf_release(&files->items[i].content);
	}
	free(files->items);
	*files = (struct run_files){ .items = NULL };
}

size_t
run_files_left_out(const struct run_files *files)
{
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++)
		count += files->items[i].why != NULL;
	return count;
}

/* Ends of a run, and their codes in a shell; those of the first two depend on
 * the run. */
static const struct {
	const char *name;
	int code;
} ends[] = {
	[0] = { "error", 255 }, /* not set */
	[REASON_EXIT] = { "exit", 0 },
	[REASON_SIGNAL] = { "signal", 0 },
	[REASON_TIME] = { "time", 137 },
	[REASON_MEMORY] = { "memory", 137 },
	[REASON_OUTPUT] = { "output", 143 },
	[REASON_ERROR] = { "error", 255 },
};

int
outcome_returncode(const struct cell_result *result)
{
	if (result->reason == REASON_EXIT)
		return (int)result->status;
	if (result->reason == REASON_SIGNAL)
		return 128 + (int)result->signal;
	return ends[result->reason].code;
}

json_t *
outcome_pack_exit_code(const struct cell_result *result)
{
	return result->reason == REASON_EXIT ||
		result->reason == REASON_SIGNAL ||
		result->reason == REASON_MEMORY ?
	    json_integer(outcome_returncode(result)) :
	    json_null();
}

const char *
outcome_reason(const struct cell_result *result)
{
	return ends[result->reason].name;
}

/* ---- paths ---- */

/* An entry: a file, or a folder that a file needed. */
struct staged {
	const char *path; /* len bytes of it */
	size_t len;
	uint32_t hash;
	bool is_file;
};

bool
stage_is_long(const char *path)
{
	size_t name = 0;

	for (size_t len = 0; path[len] != '\0'; len++) {
		name = path[len] == '/' ? 0 : name + 1;
		if (name > LIMIT_NAME || len == LIMIT_PATH)
			return true;
	}
	return false;
}

void
stage_release(struct stage *stage)
{
	tdestroy(stage->tree, free);
}

/* Hashes first: paths of one folder have long beginnings in common. */
static int
stage_compare(const void *a, const void *b)
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
stage_find(struct stage *stage, const char *path, size_t len, uint32_t hash,
    bool is_file)
{
	const struct staged key = { path, len, hash, is_file };
	struct staged *const *found = tfind(&key, &stage->tree, stage_compare);
	struct staged *entry;

	if (stage->count == STAGE_ENTRIES_MAX)
		return NULL;
	if (found != NULL)
		return *found;
	entry = xmalloc(sizeof(*entry));
	*entry = key;
	if (tsearch(entry, &stage->tree, stage_compare) == NULL)
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
	size_t len;

	if (path[0] == '\0')
		return STAGE_EMPTY;
	if (stage_is_long(path))
		return STAGE_LONG;
	len = strlen(path);
	for (size_t i = 0; i < len; i++) {
		if (path[i] == '/') {
			entry = stage_find(stage, path, i, hash, false);
			if (entry == NULL)
				return STAGE_FULL;
			if (entry->is_file)
				return strchr(path + i + 1, '/') == NULL ?
				    STAGE_PARENT_IS_FILE :
				    STAGE_ABOVE_IS_FILE;
		}
		hash = (hash ^ (unsigned char)path[i]) * 16777619U;
	}
	entry = stage_find(stage, path, len, hash, true);
	if (entry == NULL)
		return STAGE_FULL;
	return entry->is_file ? STAGE_FINE : STAGE_IS_FOLDER;
}

size_t
stage_resolve(const char *path, size_t len, char *out, size_t n,
    enum stage_up *up)
{
	*up = STAGE_DOWN;
	for (size_t i = 0; i < len;) {
		const char *slash = memchr(path + i, '/', len - i);
		size_t part = (slash == NULL ? len : (size_t)(slash - path)) -
		    i;

		if (part == 2 && memcmp(path + i, "..", 2) == 0) {
			*up = n == 0 || *up == STAGE_OUT ? STAGE_OUT : STAGE_UP;
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

/* ---- a path as a text ---- */

/* Append a name with its escapes undone.  False: it has none. */
static bool
path_text_decode(struct buf *out, const char *name, size_t len)
{
	const size_t before = out->len;

	for (size_t i = 0; i < len; i++) {
		unsigned char byte;

		if (name[i] == '%' && len - i >= 3 &&
		    text_parse_hex(name + i + 1, 2, &byte, 1) && byte != '\0' &&
		    byte != '/')
			i += 2;
		else
			byte = (unsigned char)name[i];
		buf_addc(out, (char)byte);
	}
	return out->len - before < len;
}

/* Could the name be the text of another one?  Its escapes are undone one by one
 * until a byte is no character. */
static bool
is_text_of_another(const char *name, size_t len)
{
	auto_buf struct buf now = BUF_INIT(TEXT_MAX + 1);
	auto_buf struct buf next = BUF_INIT(TEXT_MAX + 1);

	if (len > TEXT_MAX || memchr(name, '%', len) == NULL)
		return false;
	buf_add(&now, name, len);
	while (path_text_decode(&next, buf_str(&now), now.len)) {
		if (!utf8_valid(buf_str(&next), next.len))
			return true;
		buf_reset(&now);
		buf_add(&now, buf_str(&next), next.len);
		buf_reset(&next);
	}
	return false;
}

/* Append a name, cut to so many bytes at the end of a character.  False: it was
 * cut. */
static bool
write_name(struct buf *out, const char *name, size_t len, bool escaped,
    size_t most)
{
	size_t total = 0;

	for (size_t i = 0, step; i < len; i += step) {
		char escape[4];
		const char *piece = name + i;
		size_t piece_len = step = utf8_step(name + i, len - i);

		if (escaped && (step == 0 || name[i] == '%')) {
			piece_len = (size_t)snprintf(escape, sizeof(escape),
			    "%%%02X", (unsigned char)name[i]);
			piece = escape;
			step = 1;
		}
		total += piece_len;
		if (total > most)
			return false;
		buf_add(out, piece, piece_len);
	}
	return true;
}

void
path_text_write(struct buf *out, const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");

		(void)write_name(out, path, len,
		    !utf8_valid(path, len) || is_text_of_another(path, len),
		    SIZE_MAX);
		if (path[len] == '\0')
			return;
		buf_addc(out, '/');
		path += len + 1;
	}
}

bool
path_text_read(struct buf *out, const char *text)
{
	bool differs = false;

	for (;;) {
		size_t len = strcspn(text, "/");
		const size_t before = out->len;
		bool escaped = path_text_decode(out, text, len);
		const char *name = buf_str(out) + before;

		escaped = escaped &&
		    (!utf8_valid(name, out->len - before) ||
			is_text_of_another(name, out->len - before));
		if (!escaped) {
			out->len = before;
			buf_add(out, text, len);
		}
		differs = differs || escaped;
		if (text[len] == '\0')
			return differs;
		buf_addc(out, '/');
		text += len + 1;
	}
}

/* Append a path for a new file, with a number before its last name; 0: none.  A
 * path that is too long loses its folders. */
static void
write_new(struct buf *out, const char *path, size_t number)
{
	const size_t before = out->len;
	char prefix[24] = "";
	const char *name = path;

	if (number > 0)
		(void)snprintf(prefix, sizeof(prefix), "%zu-", number);
	while (strchr(name, '/') != NULL) {
		size_t len = strcspn(name, "/");

		(void)write_name(out, name, len, !utf8_valid(name, len),
		    LIMIT_NAME);
		buf_addc(out, '/');
		name += len + 1;
	}
	for (int again = 0; again < 2; again++) {
		buf_adds(out, prefix);
		(void)write_name(out, name, strlen(name),
		    !utf8_valid(name, strlen(name)),
		    LIMIT_NAME - strlen(prefix));
		if (out->len - before <= LIMIT_PATH)
			return;
		out->len = before;
	}
}

static bool
is_among(const char *text, const struct run_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (strcmp(files->items[i].path, text) == 0)
			return true;
	return false;
}

void
path_text_write_new(struct buf *out, const char *path,
    const struct run_files *earlier)
{
	const size_t before = out->len;

	write_new(out, path, 0);
	/* Large steps cost few tries where names are numbered already. */
	for (size_t number = earlier->count + 1;
	     is_among(buf_str(out) + before, earlier);
	     number += earlier->count) {
		out->len = before;
		write_new(out, path, number);
	}
}
