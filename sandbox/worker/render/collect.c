/* SPDX-License-Identifier: MIT */
#include "worker/render/collect.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/path.h"
#include "worker/render/filename.h"

void
collect_init(struct collect *collect, size_t output_max, size_t file_bytes_max)
{
	*collect = (struct collect){ .file_bytes_max = file_bytes_max };
	buf_init(&collect->output, output_max);
}

void
collect_release(struct collect *collect)
{
	buf_release(&collect->output);
	for (size_t i = 0; i < collect->file_count; i++) {
		free(collect->files[i].path);
		buf_release(&collect->files[i].data);
	}
	for (size_t i = 0; i < collect->left_count; i++)
		free(collect->left[i].path);
	for (size_t i = 0; i < collect->entry_count; i++)
		free(collect->entries[i].name);
	free(collect->folder);
	collect_init(collect, collect->output.max, collect->file_bytes_max);
}

/* More names than a menu can offer are only counted. */
void
collect_leave_out(struct collect *collect, const char *path, int64_t size,
    enum left_out why, bool displayed)
{
	if (collect->left_count == COLLECT_LEFT)
		collect->left_more++;
	else
		collect->left[collect->left_count++] = (struct collected_left){
			.path = xstrdup(path),
			.size = size,
			.why = why,
			.displayed = displayed,
		};
}

/* Widen the folder of all files to one that holds this path, too. */
static void
widen_folder(struct collect *c, const char *path)
{
	size_t last = 0; /* where the folder ends */
	size_t i = 0;

	if (c->folder == NULL) {
		c->folder = xstrdup(path);
		c->folder[path_name(path) > path ? path_name(path) - path - 1 :
						   0] = '\0';
		return;
	}
	for (; path[i] != '\0' && path[i] == c->folder[i]; i++)
		if (path[i] == '/')
			last = i;
	if (c->folder[i] == '\0' && path[i] == '/')
		last = i;
	c->folder[last] = '\0';
}

static void
note_path(struct collect *c, const struct cell_event *event)
{
	if (event->displayed)
		return;
	if (filename_is_image(event->name)) {
		c->images++;
		return;
	}
	c->others++;
	widen_folder(c, event->name);
}

/* Accept a file that is announced, while there is room for all of its bytes. */
static void
accept_file(struct collect *c, const struct cell_event *event)
{
	struct collected_file *file;
	size_t size = event->size > 0 ? (size_t)event->size : 0;

	c->taking = c->file_count < COLLECT_FILES &&
	    size <= c->file_bytes_max - c->file_bytes;
	if (!c->taking) {
		collect_leave_out(c, event->name, event->size,
		    c->file_count == COLLECT_FILES ? LEFT_OUT_COUNT :
						     LEFT_OUT_TOTAL,
		    event->displayed);
		return;
	}
	file = &c->files[c->file_count++];
	file->path = xstrdup(event->name);
	file->size = event->size;
	file->displayed = event->displayed;
	buf_init(&file->data, size);
	c->file_bytes += size;
}

void
collect_event(struct collect *c, const struct cell_event *event)
{
	size_t room = c->output.max - c->output.len;

	switch (event->kind) {
	case CELL_OUTPUT:
		buf_add(&c->output, event->data,
		    event->len < room ? event->len : room);
		break;
	case CELL_FILE:
		note_path(c, event);
		accept_file(c, event);
		break;
	case CELL_BYTES:
		/* The bytes belong to the last file that was announced, which
		 * may not have been accepted. */
		if (c->taking)
			buf_add(&c->files[c->file_count - 1].data, event->data,
			    event->len);
		break;
	case CELL_ENTRY:
		if (c->entry_count < COLLECT_ENTRIES)
			c->entries[c->entry_count++] = (struct collected_entry){
				.name = xstrdup(event->name),
				.kind = event->entry_kind,
				.size = event->size,
				.mtime = event->mtime,
			};
		break;
	case CELL_LEFT_OUT:
		note_path(c, event);
		collect_leave_out(c, event->name, event->size, event->why,
		    event->displayed);
		break;
	case CELL_STARTED:
	case CELL_RESULT:
	case CELL_QUIET:
		break;
	}
}

bool
collect_is_folded(const struct collect *collect, const char *path,
    bool displayed)
{
	return collect->folded && !displayed && !filename_is_image(path);
}

void
collect_fold(struct collect *c)
{
	size_t kept = 0;

	c->folded = true;
	for (size_t i = 0; i < c->left_count; i++) {
		if (collect_is_folded(c, c->left[i].path, c->left[i].displayed))
			free(c->left[i].path);
		else
			c->left[kept++] = c->left[i];
	}
	c->left_count = kept;
	c->left_more = 0;
}
