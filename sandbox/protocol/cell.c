/* SPDX-License-Identifier: MIT */
#include "cell.h"

#include <string.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "../base/fd.h"

#define SIZE_SANE ((int64_t)1 << 48) /* no file, no duration is larger */

void
cell_init(struct cell *cell, int fd)
{
	cell->fd = fd;
	cell->in_request = false;
	cell->started = false;
	cell->file_left = 0;
}

/* ---- reading what comes back: hostile ---- */

/* An integer within bounds; the default when it is absent (and there is one:
 * a default below min means that the field must be there). */
static bool
get_bounded(const struct frame_view *view, enum frame_tag tag, int64_t min,
    int64_t max, int64_t absent, int64_t *value)
{
	const unsigned char *data;
	size_t len;

	if (!frame_get_bytes(view, tag, &data, &len)) {
		*value = absent;
		return absent >= min;
	}
	return frame_get_int(view, tag, value) && *value >= min &&
	    *value <= max;
}

/* The name of an entry, or a relative path: neither empty nor with a NUL. */
static bool
get_name(const struct frame_view *view, enum frame_tag tag,
    struct cell_event *event)
{
	return frame_get_text(view, tag, event->name, sizeof(event->name)) &&
	    event->name[0] != '\0';
}

/* Relative, and no component that could lead elsewhere. */
static bool
is_plain_path(const char *path)
{
	while (true) {
		size_t len = strcspn(path, "/");

		if (len == 0 || len > LIMIT_NAME ||
		    (path[0] == '.' &&
			(len == 1 || (len == 2 && path[1] == '.'))))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

static bool
take_chunk(const struct frame_view *view, struct cell_event *event,
    int64_t *left)
{
	if (!frame_get_bytes(view, TAG_DATA, &event->data, &event->len) ||
	    event->len == 0 || event->len > FRAME_CHUNK ||
	    (int64_t)event->len > *left)
		return false;
	*left -= (int64_t)event->len;
	return true;
}

static bool
take_entry(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	int64_t kind;

	event->kind = CELL_ENTRY;
	if (cell->entries_left-- <= 0 || !get_name(view, TAG_NAME, event) ||
	    strlen(event->name) > LIMIT_NAME ||
	    strchr(event->name, '/') != NULL ||
	    !get_bounded(view, TAG_KIND, ENTRY_FILE, ENTRY_OTHER, 0, &kind) ||
	    !get_bounded(view, TAG_SIZE, 0, INT64_MAX, 0, &event->size) ||
	    !get_bounded(view, TAG_MTIME, INT64_MIN, INT64_MAX, 0,
		&event->mtime))
		return false;
	event->entry_kind = (enum entry_kind)kind;
	return true;
}

/* A picture that a run has displayed, or a file of its folder? */
static bool
take_displayed(const struct frame_view *view, struct cell_event *event)
{
	int64_t displayed;

	if (!get_bounded(view, TAG_DISPLAYED, 0, 1, 0, &displayed))
		return false;
	event->displayed = displayed == 1;
	return true;
}

static bool
take_file(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	event->kind = CELL_FILE;
	if (cell->files_left-- <= 0 || !get_name(view, TAG_PATH, event) ||
	    !is_plain_path(event->name) || !take_displayed(view, event) ||
	    !get_bounded(view, TAG_SIZE, 0, cell->bytes_left, -1,
		&event->size) ||
	    !get_bounded(view, TAG_MTIME, INT64_MIN, INT64_MAX, 0,
		&event->mtime))
		return false;
	cell->bytes_left -= event->size;
	cell->file_left = event->size;
	return true;
}

static bool
take_left_out(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	int64_t why;

	event->kind = CELL_LEFT_OUT;
	if (cell->left_out_left-- <= 0 || !get_name(view, TAG_PATH, event) ||
	    !is_plain_path(event->name) || !take_displayed(view, event) ||
	    !get_bounded(view, TAG_SIZE, 0, INT64_MAX, 0, &event->size) ||
	    !get_bounded(view, TAG_WHY, LEFT_OUT_COUNT, LEFT_OUT_GONE, 0, &why))
		return false;
	event->why = (enum left_out)why;
	return true;
}

/* The reason and what belongs to it. */
static bool
take_reason(const struct frame_view *view, struct cell_result *result)
{
	int64_t reason;
	int64_t error = 0;

	if (!get_bounded(view, TAG_REASON, REASON_EXIT, REASON_ERROR, 0,
		&reason))
		return false;
	result->reason = (enum run_reason)reason;
	if (!get_bounded(view, TAG_STATUS, 0, 255, 0, &result->status) ||
	    (reason == REASON_SIGNAL &&
		!get_bounded(view, TAG_SIGNAL, 1, 64, 0, &result->signal)) ||
	    (reason == REASON_ERROR &&
		!get_bounded(view, TAG_CODE, ERROR_NOT_INSIDE, ERROR_READ_ONLY,
		    0, &error)))
		return false;
	result->error = (enum cell_error)error;
	return true;
}

/* For a log: at most what fits, and up to a NUL. */
static void
take_error_text(const struct frame_view *view, struct cell_result *result)
{
	const unsigned char *data;
	size_t len;

	if (!frame_get_bytes(view, TAG_TEXT, &data, &len))
		return;
	if (len >= sizeof(result->error_text))
		len = sizeof(result->error_text) - 1;
	memcpy(result->error_text, data, len);
}

static bool
take_kept(const struct frame_view *view, struct cell_result *r)
{
	int64_t kept;
	int64_t went_on;
	int64_t ended;

	if (!get_bounded(view, TAG_KEPT, 0, 1, 0, &kept) ||
	    !get_bounded(view, TAG_WENT_ON, 0, 1, 0, &went_on) ||
	    !get_bounded(view, TAG_ENDED, 0, KEPT_PROCESSES, 0, &ended) ||
	    !get_bounded(view, TAG_KEPT_NAMES, 0, INT64_MAX, 0,
		&r->kept_names) ||
	    !get_bounded(view, TAG_KEPT_BYTES, 0, SIZE_SANE, 0, &r->kept_bytes))
		return false;
	r->kept = kept == 1;
	r->went_on = went_on == 1;
	r->ended = (enum kept_end)ended;
	return true;
}

static bool
take_result(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	struct cell_result *r = &event->result;
	int64_t full;
	int64_t cut;

	event->kind = CELL_RESULT;
	if (!take_reason(view, r) || !take_kept(view, r) ||
	    !get_bounded(view, TAG_WALL_US, 0, SIZE_SANE, 0, &r->wall_us) ||
	    !get_bounded(view, TAG_CPU_US, 0, SIZE_SANE, 0, &r->cpu_us) ||
	    !get_bounded(view, TAG_MAX_RSS, 0, SIZE_SANE, 0, &r->max_rss) ||
	    !get_bounded(view, TAG_USED_BYTES, -1, SIZE_SANE, -1,
		&r->used_bytes) ||
	    !get_bounded(view, TAG_USED_FILES, -1, SIZE_SANE, -1,
		&r->used_files) ||
	    !get_bounded(view, TAG_USED_PACKAGES, -1, SIZE_SANE, -1,
		&r->used_packages) ||
	    !get_bounded(view, TAG_DISK_FULL, 0, DISK_FULL_FILES, 0, &full) ||
	    !get_bounded(view, TAG_CUT, 0, 1, 0, &cut) ||
	    !get_bounded(view,
		r->error == ERROR_TOO_LARGE ? TAG_SIZE : TAG_TOTAL, 0,
		INT64_MAX, 0, &r->total))
		return false;
	r->disk_full = (enum disk_full)full;
	r->cut = cut == 1;
	take_error_text(view, r);
	/* Of a staged file; what is no such path is not taken over. */
	(void)frame_get_text(view, TAG_PATH, r->error_path,
	    sizeof(r->error_path));
	cell->in_request = false;
	return true;
}

/* event is all zeros. */
static bool
cell_take(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	/* A file's bytes follow it without a gap, and all of them. */
	if (!cell->in_request ||
	    (cell->file_left > 0) != (view->kind == FRAME_BYTES))
		return false;
	if (view->kind == FRAME_STARTED && !cell->started) {
		event->kind = CELL_STARTED;
		cell->started = true;
		return true;
	}
	if (view->kind == FRAME_OUTPUT) {
		event->kind = CELL_OUTPUT;
		return get_bounded(view, TAG_STREAM, 1, 2, 0, &event->stream) &&
		    take_chunk(view, event, &cell->output_left);
	}
	if (view->kind == FRAME_ENTRY)
		return take_entry(cell, view, event);
	if (view->kind == FRAME_FILE)
		return take_file(cell, view, event);
	if (view->kind == FRAME_BYTES) {
		event->kind = CELL_BYTES;
		return take_chunk(view, event, &cell->file_left);
	}
	if (view->kind == FRAME_LEFT_OUT)
		return take_left_out(cell, view, event);
	if (view->kind == FRAME_RESULT)
		return take_result(cell, view, event);
	return false;
}

int
cell_next(struct cell *cell, struct cell_event *event, int64_t deadline_ms,
    struct err *err)
{
	struct frame_view view;
	struct err why;
	ssize_t len = fd_receive_packet(cell->fd, cell->packet,
	    sizeof(cell->packet), NULL, clock_poll_timeout(deadline_ms), &why);

	memset(event, 0, sizeof(*event));
	if (len < 0 && why.code == ERR_TIMEOUT) {
		event->kind = CELL_QUIET;
		return 0;
	}
	if (len < 0)
		return err_set(err, ERR_PROTOCOL, "the cell: %s", why.text);
	if (len == 0)
		return err_set(err, ERR_PROTOCOL, "the cell is gone");
	if (!frame_parse(&view, cell->packet, (size_t)len))
		return err_set(err, ERR_PROTOCOL, "the cell sent no frame");
	if (!cell_take(cell, &view, event))
		return err_set(err, ERR_PROTOCOL,
		    "the cell sent a frame of kind %d that has no place here",
		    (int)view.kind);
	return 0;
}
