#include "eval_parts.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "pyutf8.h"

#include "../../sandbox/base/cleanup.h"

#define NAME_LEN_MAX 255
#define HOME "home"

/* ---- paths ---- */

/* Resolve what a path in /home means, by its text alone.  out has room for the
 * path and for HOME; *odd: there was a ".." in it.  False: it leaves /home. */
static bool
resolve(const char *path, size_t len, char *out, bool *odd)
{
	size_t n = strlen(HOME);

	memcpy(out, HOME, n);
	for (size_t i = 0; i < len;) {
		const char *slash = memchr(path + i, '/', len - i);
		size_t part = slash == NULL ? len - i :
					      (size_t)(slash - path) - i;

		if (part == 2 && memcmp(path + i, "..", 2) == 0) {
			*odd = true;
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
	if (strcmp(out, HOME) == 0) {
		out[0] = '\0';
		return true;
	}
	if (strncmp(out, HOME "/", strlen(HOME "/")) != 0)
		return false;
	memmove(out, out + strlen(HOME "/"), n - strlen(HOME));
	return true;
}

static bool
refuse_file(struct eval_refusal *refusal, const char *before,
    const struct pyvalue *path, const char *after)
{
	(void)eval_refuse_with(refusal, 400, EVAL_TITLE_FILE, "%s", before);
	buf_add(&refusal->description, path->u.text, path->count);
	buf_adds(&refusal->description, after);
	return false;
}

static bool
take_path(struct eval_file *file, const struct pyvalue *path,
    struct eval_refusal *refusal)
{
	char *resolved;

	if (strlen(path->u.text) != path->count ||
	    pyutf8_has_surrogate(path->u.text, path->count))
		return refuse_file(refusal, "File path '", path,
		    "' may not traverse beyond root");
	resolved = xmalloc(path->count + sizeof(HOME) + 1);
	file->path = resolved;
	file->given = path->u.text;
	return resolve(path->u.text, path->count, resolved, &file->odd) ||
	    refuse_file(refusal, "File path '", path,
		"' may not traverse beyond root");
}

/* The text is decoded where it lies. */
static bool
take_content(struct eval_file *file, const struct pyvalue *path,
    const struct pyvalue *content, struct eval_refusal *refusal)
{
	if (content == NULL) {
		file->content = "";
		file->size = 0;
		return true;
	}
	if (!base64_decode(content->u.text, content->count, content->u.text,
		&file->size))
		return refuse_file(refusal,
		    "Invalid base64 encoding for file '", path, "'");
	file->content = content->u.text;
	return true;
}

bool
eval_take_files(struct eval_request *req, const struct pyvalue *files,
    struct eval_refusal *refusal)
{
	if (files == NULL)
		return true;
	req->files = xcalloc(files->count, sizeof(*req->files));
	for (size_t i = 0; i < files->count; i++) {
		const struct pyvalue *file = &files->u.items[i];
		const struct pyvalue *path = pyvalue_get(file, "path");

		req->file_count++;
		if (!take_path(&req->files[i], path, refusal) ||
		    !take_content(&req->files[i], path,
			pyvalue_get(file, "content"), refusal))
			return false;
	}
	return true;
}

/* ---- one after the other ---- */

/* What is there: a file, or a folder that a file needed. */
struct staged {
	const char *path; /* len bytes of it */
	size_t len;
	uint32_t hash;
	bool is_file;
};

struct stage {
	void *tree;
	struct staged *entries;
	size_t count;
	const struct eval_file *file;
	struct eval_refusal *refusal;
};

static int
compare_entries(const void *a, const void *b)
{
	const struct staged *x = a;
	const struct staged *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->path, y->path, x->len);
}

/* "<class>: Failed to create file '<as it was sent>'." */
static bool
fail(struct stage *stage, const char *class)
{
	return eval_refuse_with(stage->refusal, 200, "",
	    "%s: Failed to create file '%s'.", class, stage->file->given);
}

/* The entry for the first len bytes of the path, made when it is not there;
 * NULL: there are too many. */
static struct staged *
entry_find(struct stage *stage, const char *path, size_t len, uint32_t hash,
    bool is_file)
{
	struct staged *entry;
	struct staged *const *found;

	if (stage->count == EVAL_ENTRIES_MAX)
		return NULL;
	entry = &stage->entries[stage->count];
	*entry = (struct staged){ path, len, hash, is_file };
	found = tsearch(entry, &stage->tree, compare_entries);
	if (found == NULL)
		return NULL;
	if (*found == entry)
		stage->count++;
	return *found;
}

/* The folder in which the file, or the folder of that folder, is to be. */
static bool
stage_folder(struct stage *stage, size_t len, uint32_t hash)
{
	const char *path = stage->file->path;
	const struct staged *entry = entry_find(stage, path, len, hash, false);

	if (entry == NULL)
		return fail(stage, "OSError");
	if (entry->is_file)
		return fail(stage,
		    strchr(path + len + 1, '/') == NULL ? "FileExistsError" :
							  "NotADirectoryError");
	return true;
}

static bool
has_long_name(const char *path)
{
	size_t name = 0;

	for (; *path != '\0'; path++) {
		name = *path == '/' ? 0 : name + 1;
		if (name > NAME_LEN_MAX)
			return true;
	}
	return false;
}

static bool
stage_file(struct stage *stage)
{
	const char *path = stage->file->path;
	size_t len = strlen(path);
	uint32_t hash = 2166136261U; /* FNV-1a */
	const struct staged *entry;

	if (len == 0)
		return fail(stage, "IsADirectoryError");
	if (len > EVAL_PATH_MAX || has_long_name(path))
		return fail(stage, "OSError");
	for (size_t i = 0; i < len; i++) {
		if (path[i] == '/' && !stage_folder(stage, i, hash))
			return false;
		hash = (hash ^ (unsigned char)path[i]) * 16777619U;
	}
	entry = entry_find(stage, path, len, hash, true);
	if (entry == NULL)
		return fail(stage, "OSError");
	return entry->is_file || fail(stage, "IsADirectoryError");
}

static void
keep(void *entry)
{
	(void)entry;
}

bool
eval_stage_files(const struct eval_request *req, struct eval_refusal *refusal)
{
	auto_free struct staged *entries = NULL;
	struct stage stage = { .refusal = refusal };
	bool good = true;

	if (req->file_count == 0)
		return true;
	entries = xcalloc(EVAL_ENTRIES_MAX, sizeof(*entries));
	stage.entries = entries;
	for (size_t i = 0; i < req->file_count && good; i++) {
		stage.file = &req->files[i];
		good = stage_file(&stage);
	}
	tdestroy(stage.tree, keep);
	return good;
}
