/* SPDX-License-Identifier: MIT */
#include "eval_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "../pytext/pyutf8.h"
#include "stage.h"

#define HOME "home"

/* ---- paths ---- */

/* With the path as it was sent between two texts. */
static bool
refuse_file(struct eval_refusal *refusal, const char *before,
    const struct pyvalue *path, const char *after)
{
	(void)eval_refuse_with(refusal, 400, EVAL_TITLE_FILE, "%s", before);
	buf_add(&refusal->description, path->u.text, path->count);
	buf_adds(&refusal->description, after);
	return false;
}

/* Resolve what the path means in /home, by its text alone: what leaves it, and
 * what no file system takes, is refused. */
static bool
take_path(struct eval_file *file, const struct pyvalue *path,
    struct eval_refusal *refusal)
{
	char *out = xmalloc(sizeof(HOME) + path->count + 1);
	size_t home = strlen(HOME);

	memcpy(out, HOME, sizeof(HOME));
	file->path = out;
	file->given = path->u.text;
	(void)stage_resolve(path->u.text, path->count, out, home, &file->odd);
	if (strlen(path->u.text) != path->count ||
	    pyutf8_has_surrogate(path->u.text, path->count) ||
	    strncmp(out, HOME, home) != 0 ||
	    (out[home] != '/' && out[home] != '\0'))
		return refuse_file(refusal, "File path '", path,
		    "' may not traverse beyond root");
	/* Of "home/a" the "a", of "home" nothing. */
	memmove(out, out + home + (out[home] == '/'),
	    strlen(out + home) + (out[home] != '/'));
	return true;
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

bool
eval_stage_files(const struct eval_request *req, struct eval_refusal *refusal)
{
	static const char *const classes[] = {
		[STAGE_FINE] = "",
		[STAGE_EMPTY] = "IsADirectoryError",
		[STAGE_LONG] = "OSError",
		[STAGE_FULL] = "OSError",
		[STAGE_IS_FOLDER] = "IsADirectoryError",
		[STAGE_PARENT_IS_FILE] = "FileExistsError",
		[STAGE_ABOVE_IS_FILE] = "NotADirectoryError",
	};
	enum stage_outcome outcome = STAGE_FINE;
	struct stage stage;
	size_t i = 0;

	stage_init(&stage);
	while (i < req->file_count && outcome == STAGE_FINE)
		outcome = stage_add(&stage, req->files[i++].path);
	stage_release(&stage);
	return outcome == STAGE_FINE ||
	    eval_refuse_with(refusal, 200, "",
		"%s: Failed to create file '%s'.", classes[outcome],
		req->files[i - 1].given);
}
