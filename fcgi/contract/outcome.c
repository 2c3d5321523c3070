/* SPDX-License-Identifier: MIT */
#include "contract/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/cell.h"

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

void
outcome_add_exit_code(struct buf *out, const struct cell_result *result)
{
	if (result->reason == REASON_EXIT || result->reason == REASON_SIGNAL ||
	    result->reason == REASON_MEMORY)
		buf_addf(out, "%d", outcome_returncode(result));
	else
		buf_adds(out, "null");
}

const char *
outcome_reason(const struct cell_result *result)
{
	return ends[result->reason].name;
}
