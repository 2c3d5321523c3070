#include "cell.h"

#include <poll.h>
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

/* ---- sending a request ---- */

static int
cell_send_frame(struct cell *cell, const struct frame *frame, int64_t deadline,
    struct err *err)
{
	if (frame->overflow)
		return err_set(err, ERR_LIMIT, "the request is too long");
	return fd_send_packet(cell->fd, frame->data, frame->len, -1, -1,
	    clock_poll_timeout(deadline), err);
}

static void
add_text(struct frame *frame, enum frame_tag tag, const char *text)
{
	if (text != NULL)
		frame_add_text(frame, tag, text);
}

/* Zero and false are what an absent field means. */
static void
add_int(struct frame *frame, enum frame_tag tag, int64_t value)
{
	if (value != 0)
		frame_add_int(frame, tag, value);
}

static void
cell_build_head(struct frame *frame, const struct cell_request *request)
{
	frame_start(frame, FRAME_REQUEST);
	frame_add_int(frame, TAG_OP, request->op);
	add_text(frame, TAG_PATH, request->path);
	add_text(frame, TAG_CWD, request->cwd);
	add_text(frame, TAG_NAME, request->name);
	for (size_t i = 0; request->args != NULL && request->args[i] != NULL;
	     i++)
		frame_add_text(frame, TAG_ARG, request->args[i]);
	if (request->index_url != NULL && *request->index_url != '\0')
		frame_add_text(frame, TAG_INDEX_URL, request->index_url);
	add_int(frame, TAG_ECHO, request->echo);
	add_int(frame, TAG_MERGE, request->merge);
	add_int(frame, TAG_RECURSIVE, request->recursive);
	add_int(frame, TAG_CUT, request->cut);
	add_int(frame, TAG_SDIST, request->sdist);
	add_int(frame, TAG_CA, request->ca);
	add_int(frame, TAG_WALL_MS, request->wall_ms);
	add_int(frame, TAG_OUTPUT_MAX, request->output_max);
	add_int(frame, TAG_COLLECT_FILES, request->collect_files);
	add_int(frame, TAG_COLLECT_BYTES, request->collect_bytes);
	add_int(frame, TAG_COLLECT_TOTAL, request->collect_total);
	add_int(frame, TAG_OFFSET, request->offset);
	add_int(frame, TAG_COUNT, request->count);
	add_int(frame, TAG_MAX_BYTES, request->max_bytes);
}

/* Nothing is sent for an empty part: absent and empty mean the same. */
static int
cell_send_part(struct cell *cell, enum frame_part part, const char *data,
    size_t len, int64_t deadline, struct err *err)
{
	struct frame frame;

	for (size_t at = 0; data != NULL && at < len; at += FRAME_CHUNK) {
		size_t piece = len - at < FRAME_CHUNK ? len - at : FRAME_CHUNK;

		frame_start(&frame, FRAME_BYTES);
		frame_add_int(&frame, TAG_PART, part);
		frame_add_bytes(&frame, TAG_DATA, data + at, piece);
		if (cell_send_frame(cell, &frame, deadline, err) != 0)
			return -1;
	}
	return 0;
}

/* What the cell may send back, as counts. */
static void
cell_expect(struct cell *cell, const struct cell_request *request)
{
	bool run = request->op == OP_RUN;

	cell->in_request = true;
	cell->started = false;
	cell->file_left = 0;
	cell->output_left = request->output_max;
	cell->entries_left = request->op == OP_LIST ? request->count :
	    request->op == OP_STAT		    ? 1 :
						      0;
	cell->files_left = run	   ? request->collect_files :
	    request->op == OP_READ ? 1 :
				     0;
	cell->bytes_left = run ? request->collect_total : request->max_bytes;
	cell->left_out_left = run ? CELL_LEFT_OUT_MAX : 0;
}

int
cell_send(struct cell *cell, const struct cell_request *request, int timeout_ms,
    struct err *err)
{
	int64_t deadline = clock_monotonic_ms() + timeout_ms;
	struct frame frame;

	if (cell->in_request)
		return err_set(err, ERR_BUSY, "the cell has a request already");
	cell_build_head(&frame, request);
	if (cell_send_frame(cell, &frame, deadline, err) != 0 ||
	    cell_send_part(cell, PART_SOURCE, request->source,
		request->source_len, deadline, err) != 0 ||
	    cell_send_part(cell, PART_STDIN, request->input, request->input_len,
		deadline, err) != 0 ||
	    cell_send_part(cell, PART_CONTENT, request->content,
		request->content_len, deadline, err) != 0)
		return -1;
	frame_start(&frame, FRAME_GO);
	if (cell_send_frame(cell, &frame, deadline, err) != 0)
		return -1;
	cell_expect(cell, request);
	return 0;
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

static bool
is_plain_name(const char *name)
{
	return strlen(name) <= 255 && strchr(name, '/') == NULL;
}

/* Relative, and no component that could lead elsewhere. */
static bool
is_plain_path(const char *path)
{
	while (true) {
		size_t len = strcspn(path, "/");

		if (len == 0 || len > 255 ||
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
take_started(struct cell *cell, struct cell_event *event)
{
	bool first = !cell->started;

	event->kind = CELL_STARTED;
	cell->started = true;
	return first;
}

static bool
take_output(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	int64_t stream;

	event->kind = CELL_OUTPUT;
	if (!get_bounded(view, TAG_STREAM, 1, 2, 0, &stream))
		return false;
	event->stream = (int)stream;
	return take_chunk(view, event, &cell->output_left);
}

static bool
take_bytes(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	event->kind = CELL_BYTES;
	return take_chunk(view, event, &cell->file_left);
}

static bool
take_entry(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	int64_t kind;

	event->kind = CELL_ENTRY;
	if (cell->entries_left-- <= 0 || !get_name(view, TAG_NAME, event) ||
	    !is_plain_name(event->name) ||
	    !get_bounded(view, TAG_KIND, ENTRY_FILE, ENTRY_OTHER, 0, &kind) ||
	    !get_bounded(view, TAG_SIZE, 0, INT64_MAX, 0, &event->size) ||
	    !get_bounded(view, TAG_MTIME, INT64_MIN, INT64_MAX, 0,
		&event->mtime))
		return false;
	event->entry_kind = (enum entry_kind)kind;
	return true;
}

static bool
take_file(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	event->kind = CELL_FILE;
	if (cell->files_left-- <= 0 || !get_name(view, TAG_PATH, event) ||
	    !is_plain_path(event->name) ||
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
	    !is_plain_path(event->name) ||
	    !get_bounded(view, TAG_SIZE, 0, INT64_MAX, 0, &event->size) ||
	    !get_bounded(view, TAG_WHY, LEFT_OUT_COUNT, LEFT_OUT_PATH, 0, &why))
		return false;
	event->why = (enum left_out)why;
	return true;
}

/* The reason and what belongs to it. */
static bool
take_reason(const struct frame_view *view, struct cell_result *result)
{
	int64_t reason;
	int64_t status = 0;
	int64_t signal = 0;
	int64_t error = 0;

	if (!get_bounded(view, TAG_REASON, REASON_EXIT, REASON_ERROR, 0,
		&reason))
		return false;
	result->reason = (enum run_reason)reason;
	if (!get_bounded(view, TAG_STATUS, 0, 255, 0, &status) ||
	    (reason == REASON_SIGNAL &&
		!get_bounded(view, TAG_SIGNAL, 1, 64, 0, &signal)) ||
	    (reason == REASON_ERROR &&
		!get_bounded(view, TAG_CODE, ERROR_NOT_INSIDE, ERROR_FAILED, 0,
		    &error)))
		return false;
	result->status = (int)status;
	result->signal = (int)signal;
	result->error = (enum cell_error)error;
	return true;
}

/* For a log: at most what fits, and up to a NUL. */
static void
take_error_text(const struct frame_view *view, struct cell_result *result)
{
	const unsigned char *data;
	size_t len;

	result->error_text[0] = '\0';
	if (!frame_get_bytes(view, TAG_TEXT, &data, &len))
		return;
	if (len >= sizeof(result->error_text))
		len = sizeof(result->error_text) - 1;
	memcpy(result->error_text, data, len);
	result->error_text[len] = '\0';
}

static bool
take_result(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	struct cell_result *r = &event->result;
	int64_t full;

	event->kind = CELL_RESULT;
	if (!take_reason(view, r) ||
	    !get_bounded(view, TAG_WALL_US, 0, SIZE_SANE, 0, &r->wall_us) ||
	    !get_bounded(view, TAG_CPU_US, 0, SIZE_SANE, 0, &r->cpu_us) ||
	    !get_bounded(view, TAG_MAX_RSS, 0, SIZE_SANE, 0, &r->max_rss) ||
	    !get_bounded(view, TAG_USED_BYTES, -1, SIZE_SANE, -1,
		&r->used_bytes) ||
	    !get_bounded(view, TAG_USED_FILES, -1, SIZE_SANE, -1,
		&r->used_files) ||
	    !get_bounded(view, TAG_DISK_FULL, 0, 1, 0, &full) ||
	    !get_bounded(view,
		r->error == ERROR_TOO_LARGE ? TAG_SIZE : TAG_TOTAL, 0,
		INT64_MAX, 0, &r->total))
		return false;
	r->disk_full = full == 1;
	take_error_text(view, r);
	cell->in_request = false;
	return true;
}

static bool
cell_take(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	/* A file's bytes follow it without a gap, and all of them. */
	if (!cell->in_request ||
	    (cell->file_left > 0) != (view->kind == FRAME_BYTES))
		return false;
	if (view->kind == FRAME_STARTED)
		return take_started(cell, event);
	if (view->kind == FRAME_OUTPUT)
		return take_output(cell, view, event);
	if (view->kind == FRAME_ENTRY)
		return take_entry(cell, view, event);
	if (view->kind == FRAME_FILE)
		return take_file(cell, view, event);
	if (view->kind == FRAME_BYTES)
		return take_bytes(cell, view, event);
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
	    sizeof(cell->packet), NULL, NULL, clock_poll_timeout(deadline_ms),
	    &why);

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
