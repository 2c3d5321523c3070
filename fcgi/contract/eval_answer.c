/* SPDX-License-Identifier: MIT */
#include "eval_answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "../pytext/pydump.h"

#include "../../sandbox/base/utf8.h"
#include "../../sandbox/protocol/cell.h"

/* ---- files ---- */

bool
eval_wants(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name == NULL ? path : name + 1;
	return path[0] != '.' && strstr(path, "/.") == NULL && name[0] != '_' &&
	    name[0] != '\0';
}

void
eval_files_init(struct eval_files *files)
{
	memset(files, 0, sizeof(*files));
}

void
eval_files_release(struct eval_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->items[i].path);
		buf_release(&files->items[i].content);
	}
	for (size_t i = 0; i < files->left_out_count; i++)
		free(files->left_out[i].path);
	free(files->items);
	free(files->left_out);
	eval_files_init(files);
}

/* The bytes of the last file that make no group of three. */
static void
end_file(struct eval_files *files)
{
	if (files->rest_count > 0)
		base64_add(&files->items[files->count - 1].content, files->rest,
		    files->rest_count);
	files->rest_count = 0;
}

void
eval_files_begin(struct eval_files *files, const char *path, int64_t size)
{
	struct eval_back *file;

	end_file(files);
	if (!utf8_valid(path, strlen(path)))
		files->bad_name = true;
	files->items = xrealloc(files->items,
	    (files->count + 1) * sizeof(*files->items));
	file = &files->items[files->count++];
	file->path = xstrdup(path);
	file->size = size;
	buf_init(&file->content, ((size_t)size + 2) / 3 * 4);
}

/* Three bytes become four letters: what is over waits for the next slice. */
void
eval_files_add(struct eval_files *files, const void *data, size_t len)
{
	const unsigned char *bytes = data;
	struct buf *content = &files->items[files->count - 1].content;
	size_t whole;

	while (files->rest_count > 0 && len > 0) {
		files->rest[files->rest_count++] = *bytes++;
		len--;
		if (files->rest_count == 3)
			end_file(files);
	}
	whole = len / 3 * 3;
	base64_add(content, bytes, whole);
	for (size_t i = whole; i < len; i++)
		files->rest[files->rest_count++] = bytes[i];
}

void
eval_files_leave_out(struct eval_files *files, const char *path, int64_t size,
    const char *why)
{
	files->more = files->more ||
	    files->left_out_count == LIMIT_LEFT_OUT_TAKEN;
	if (files->left_out_count == LIMIT_LEFT_OUT_TAKEN)
		return;
	files->left_out = xrealloc(files->left_out,
	    (files->left_out_count + 1) * sizeof(*files->left_out));
	files->left_out[files->left_out_count++] = (struct eval_left_out){
		.path = xstrdup(path), .size = size, .why = why
	};
}

/* In UTF-8 the order of bytes is that of code points. */
static int
compare_files(const void *a, const void *b)
{
	const struct eval_back *x = a;
	const struct eval_back *y = b;

	return strcmp(x->path, y->path);
}

void
eval_files_end(struct eval_files *files)
{
	end_file(files);
	if (files->count > 1)
		qsort(files->items, files->count, sizeof(*files->items),
		    compare_files);
}

/* ---- the result ---- */

struct end {
	const char *name;
	int code; /* what a shell makes of it */
};

/* How a run may end; the codes of the first two depend on the run. */
static const struct end ends[] = {
	[0] = { "error", 255 }, /* nobody has said */
	[REASON_EXIT] = { "exit", 0 },
	[REASON_SIGNAL] = { "signal", 0 },
	[REASON_TIME] = { "time", 137 },
	[REASON_MEMORY] = { "memory", 137 },
	[REASON_OUTPUT] = { "output", 143 },
	[REASON_ERROR] = { "error", 255 },
};

int
eval_returncode(const struct cell_result *result)
{
	if (result->reason == REASON_EXIT)
		return result->status;
	if (result->reason == REASON_SIGNAL)
		return 128 + result->signal;
	return ends[result->reason].code;
}

const char *
eval_reason(const struct cell_result *result)
{
	return ends[result->reason].name;
}

struct writer {
	eval_write_fn write;
	void *arg;
	size_t len;
	struct buf piece;
};

/* Count what is written; write it, unless only its length is wanted. */
static void
put(struct writer *w, const void *data, size_t len)
{
	w->len += len;
	if (w->write != NULL && len > 0)
		w->write(w->arg, data, len);
}

/* Write out what is in the piece. */
static void
put_piece(struct writer *w)
{
	put(w, buf_str(&w->piece), w->piece.len);
	buf_reset(&w->piece);
}

/* The content is in base64 already, and needs no escape. */
static void
put_file(struct writer *w, const struct eval_back *file)
{
	pydump_addf(&w->piece, PYDUMP_UTF8,
	    "{\"path\": \"%s\", \"size\": %" PRId64 ", \"content\": \"",
	    file->path, file->size);
	put_piece(w);
	put(w, buf_str(&file->content), file->content.len);
	buf_adds(&w->piece, "\"}");
}

/* What only those get who ask for it. */
static void
put_extras(struct writer *w, const struct eval_result *result)
{
	const struct eval_files *files = result->files;
	const struct cell_result *cell = result->cell;

	if (cell != NULL)
		buf_addf(&w->piece,
		    ", \"duration_ms\": %" PRId64 ", \"cpu_ms\": %" PRId64
		    ", \"max_rss_bytes\": %" PRId64 ", \"reason\": \"%s\"",
		    cell->wall_us / 1000, cell->cpu_us / 1000, cell->max_rss,
		    eval_reason(cell));
	buf_adds(&w->piece, ", \"left_out\": [");
	for (size_t i = 0; files != NULL && i < files->left_out_count; i++) {
		const struct eval_left_out *file = &files->left_out[i];

		pydump_addf(&w->piece, PYDUMP_UTF8,
		    "%s{\"path\": \"%s\", \"size\": %" PRId64
		    ", \"why\": \"%s\"}",
		    i > 0 ? ", " : "", file->path, file->size, file->why);
		put_piece(w);
	}
	buf_addf(&w->piece, "], \"more_left_out\": %s",
	    files != NULL && files->more ? "true" : "false");
}

size_t
eval_answer(const struct eval_result *result, eval_write_fn write, void *arg)
{
	struct writer w = { .write = write, .arg = arg };
	const struct eval_files *files = result->files;
	const char *text = result->null_text;

	/* A character is at most six bytes of JSON. */
	buf_init(&w.piece,
	    6 * (text != NULL ? strlen(text) : result->text->len) + 16384);
	if (text != NULL) {
		pydump_addf(&w.piece, PYDUMP_UTF8,
		    "{\"stdout\": \"%s\", \"returncode\": null, \"files\": [",
		    text);
	} else {
		buf_adds(&w.piece, "{\"stdout\": ");
		pydump_add_string(&w.piece, buf_str(result->text),
		    result->text->len, PYDUMP_UTF8);
		buf_addf(&w.piece, ", \"returncode\": %d, \"files\": [",
		    result->returncode);
	}
	for (size_t i = 0; text == NULL && files != NULL && i < files->count;
	     i++) {
		buf_adds(&w.piece, i > 0 ? ", " : "");
		put_file(&w, &files->items[i]);
	}
	buf_addc(&w.piece, ']');
	if (result->extras)
		put_extras(&w, result);
	buf_addc(&w.piece, '}');
	put_piece(&w);
	buf_release(&w.piece);
	return w.len;
}
