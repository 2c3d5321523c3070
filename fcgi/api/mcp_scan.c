/* SPDX-License-Identifier: MIT */
/*
 * Which files of a session a run has made or changed: a session's cell does not
 * tell, so its folders are listed before and after.
 */
#include <stdlib.h>
#include <string.h>

#include "mcp_work.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"

#define SCAN_FOLDERS 64
#define SCAN_ENTRIES 2000
/* For all of the one, and of the other. */
#define LIST_MS 5000
#define READ_MS 20000
#define COLLECT_TOTAL (INT64_C(100) << 20)

struct mcp_scanned {
	char *path; /* heap */
	int64_t size;
	int64_t mtime; /* seconds */
	bool is_file;  /* a regular one: others cannot be sent */
};

/* A scan under way: the folders that it has met. */
struct scanning {
	struct mcp_scan *scan;
	char *folders[SCAN_FOLDERS]; /* heap */
	size_t folder_count;
	size_t at; /* the one that is being listed */
};

/* Folders with a dot before their names are caches and settings. */
static void
take_entry(void *arg, const struct cell_event *event)
{
	struct scanning *s = arg;
	const char *folder = s->folders[s->at];
	char *path;

	if (event->kind != CELL_ENTRY)
		return;
	if (strlen(folder) + strlen(event->name) + 2 > LIMIT_PATH) {
		s->scan->cut = true;
		return;
	}
	path = xprintf("%s%s%s", folder, folder[0] == '\0' ? "" : "/",
	    event->name);
	if (event->entry_kind == ENTRY_DIRECTORY && event->name[0] != '.' &&
	    s->folder_count < SCAN_FOLDERS) {
		s->folders[s->folder_count++] = path;
		return;
	}
	if (event->entry_kind != ENTRY_DIRECTORY &&
	    s->scan->count < SCAN_ENTRIES) {
		s->scan->items[s->scan->count++] = (struct mcp_scanned){ path,
			event->size, event->mtime,
			event->entry_kind == ENTRY_FILE };
		return;
	}
	free(path);
	s->scan->cut |= event->entry_kind != ENTRY_DIRECTORY ||
	    event->name[0] != '.';
}

/* What is left of a time, for one request; 0: nothing. */
static int64_t
left_ms(int64_t deadline)
{
	int64_t left = deadline - clock_monotonic_ms();

	return left > 0 ? left : 0;
}

bool
mcp_scan(struct mcp_scan *scan, struct mcp_exchange *x, struct mcp_borrowed *b)
{
	struct scanning s = {
		.scan = scan, .folders = { xstrdup("") }, .folder_count = 1
	};
	const int64_t deadline = clock_monotonic_ms() + LIST_MS;
	struct cell_result result;
	bool good = true;

	scan->items = xcalloc(SCAN_ENTRIES, sizeof(*scan->items));
	for (; good && s.at < s.folder_count; s.at++) {
		const struct cell_request request = { .op = OP_LIST,
			.folder = "/workspace",
			.path = s.folders[s.at],
			.count = SCAN_ENTRIES,
			.wall_ms = left_ms(deadline) };

		if (request.wall_ms == 0) {
			scan->cut = true;
			break;
		}
		good = mcp_ask(x, b, &request, take_entry, &s, &result);
		scan->cut |= good && result.total > SCAN_ENTRIES;
	}
	for (size_t i = 0; i < s.folder_count; i++)
		free(s.folders[i]);
	return good;
}

void
mcp_scan_release(struct mcp_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		free(scan->items[i].path);
	free(scan->items);
	*scan = (struct mcp_scan){ .items = NULL };
}

/* What was written in the second in which the run began may be either. */
static bool
has_changed(const struct mcp_scanned *item, const struct mcp_scan *before,
    int64_t since_s)
{
	if (item->mtime >= since_s)
		return true;
	for (size_t i = 0; i < before->count; i++)
		if (strcmp(before->items[i].path, item->path) == 0)
			return before->items[i].size != item->size ||
			    before->items[i].mtime != item->mtime;
	return true;
}

void
mcp_scan_collect(struct mcp_work *w, struct mcp_borrowed *b,
    const struct mcp_scan *before, const struct mcp_scan *after,
    int64_t since_s)
{
	const int64_t deadline = clock_monotonic_ms() + READ_MS;
	int64_t room = COLLECT_TOTAL;
	struct cell_result result;

	w->more_left |= before->cut || after->cut;
	for (size_t i = 0; i < after->count && !b->lost; i++) {
		const struct mcp_scanned *item = &after->items[i];
		const struct cell_request request = { .op = OP_READ,
			.folder = "/workspace",
			.path = item->path,
			.max_bytes = room,
			.wall_ms = left_ms(deadline) };

		if (!has_changed(item, before, since_s))
			continue;
		if (!item->is_file) {
			mcp_work_leave_out(w, item->path, 0,
			    api_run_left_out[LEFT_OUT_KIND]);
			continue;
		}
		if (item->size > room || w->left_count >= MCP_LEFT_MAX ||
		    request.wall_ms == 0) {
			mcp_work_leave_out(w, item->path, item->size,
			    item->size > room	    ? "too large together" :
				request.wall_ms > 0 ? "too many files" :
						      "no time left");
			continue;
		}
		room -= item->size;
		if (mcp_ask(w->x, b, &request, mcp_work_event, w, &result) &&
		    result.reason == REASON_ERROR)
			mcp_work_leave_out(w, item->path, item->size,
			    "not readable");
		mcp_work_end_file(w);
	}
}
