/* SPDX-License-Identifier: MIT */
#include "protocol/cell.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

#define SIZE_SANE ((int64_t)1 << 48) /* no file, no duration is larger */

void
cell_init(struct cell *cell, int fd)
{
	cell->fd = fd;
	cell->in_request = false;
	cell->started = false;
	cell->file_left = 0;
}

/* ---- sending a request: its head, its pieces, GO ---- */

/* A longer frame is not copied, and waits for no other one. */
#define SHORT 4096
_Static_assert(FD_PACKETS *SHORT <= FRAME_MAX, "they wait in a frame's place");

static int
cell_flush(struct cell *cell, int64_t deadline, struct err *err)
{
	int sent = fd_send_packets(cell->fd, &cell->waiting,
	    clock_poll_timeout(deadline), err);

	cell->waiting.count = 0;
	return sent;
}

/* A usual request is three short frames, which the cell hears of once. */
static int
cell_send_frame(struct cell *cell, const struct frame *frame, int64_t deadline,
    struct err *err)
{
	struct fd_packets *waiting = &cell->waiting;
	struct iovec *next;

	if (frame->overflow)
		return err_set(err, ERR_LIMIT, "the request is too long");
	if ((frame->len > SHORT || waiting->count == FD_PACKETS) &&
	    cell_flush(cell, deadline, err) != 0)
		return -1;
	if (frame->len > SHORT)
		return fd_send_packet(cell->fd, frame->data, frame->len, -1,
		    clock_poll_timeout(deadline), err);
	next = &waiting->parts[waiting->count];
	next->iov_base = cell->packet + waiting->count * SHORT;
	next->iov_len = frame->len;
	memcpy(next->iov_base, frame->data, frame->len);
	waiting->count++;
	return 0;
}

/* GO, on which the end of a pipe may ride. */
static int
cell_send_go(struct cell *cell, const struct cell_request *request,
    int64_t deadline, struct err *err)
{
	struct frame frame;

	frame_start(&frame, FRAME_GO);
	if (!request->live)
		return cell_send_frame(cell, &frame, deadline, err) != 0 ?
		    -1 :
		    cell_flush(cell, deadline, err);
	if (cell_flush(cell, deadline, err) != 0)
		return -1;
	return fd_send_packet(cell->fd, frame.data, frame.len, request->live_fd,
	    clock_poll_timeout(deadline), err);
}

static void
cell_build_head(struct frame *frame, const struct cell_request *request)
{
	frame_start(frame, FRAME_REQUEST);
	frame_add_int(frame, TAG_OP, request->op);
	frame_add_text(frame, TAG_PATH, request->path);
	frame_add_text(frame, TAG_CWD, request->cwd);
	frame_add_text(frame, TAG_NAME, request->name);
	for (size_t i = 0; request->args != NULL && request->args[i] != NULL;
	     i++)
		frame_add_text(frame, TAG_ARG, request->args[i]);
	frame_add_nonzero(frame, TAG_ECHO, request->echo);
	frame_add_nonzero(frame, TAG_KEEP, request->keep);
	frame_add_nonzero(frame, TAG_MERGE, request->merge);
	frame_add_nonzero(frame, TAG_RECURSIVE, request->recursive);
	frame_add_nonzero(frame, TAG_CUT, request->cut);
	frame_add_nonzero(frame, TAG_WALL_MS, request->wall_ms);
	frame_add_nonzero(frame, TAG_OUTPUT_MAX, request->output_max);
	frame_add_nonzero(frame, TAG_COLLECT_FILES, request->collect_files);
	frame_add_nonzero(frame, TAG_COLLECT_BYTES, request->collect_bytes);
	frame_add_nonzero(frame, TAG_COLLECT_TOTAL, request->collect_total);
	frame_add_nonzero(frame, TAG_OFFSET, request->offset);
	frame_add_nonzero(frame, TAG_COUNT, request->count);
	frame_add_nonzero(frame, TAG_MAX_BYTES, request->max_bytes);
	/* These tags only api and session cells know. */
	frame_add_text(frame, TAG_FOLDER, request->folder);
	for (size_t i = 0; request->env != NULL && request->env[i] != NULL; i++)
		frame_add_text(frame, TAG_ENV, request->env[i]);
	frame_add_nonzero(frame, TAG_DISPLAY, request->display);
	frame_add_nonzero(frame, TAG_END_ALL, request->end_all);
	frame_add_nonzero(frame, TAG_PLAIN, request->plain);
	frame_add_nonzero(frame, TAG_LIVE, request->live);
	frame_add_nonzero(frame, TAG_LIMIT_MEMORY, request->limit_memory);
	frame_add_nonzero(frame, TAG_LIMIT_PROCESSES, request->limit_processes);
	frame_add_nonzero(frame, TAG_LIMIT_FILES, request->limit_files);
	frame_add_nonzero(frame, TAG_LIMIT_CPU, request->limit_cpu);
	frame_add_nonzero(frame, TAG_OUTPUT_MODE, request->output_mode);
	frame_add_nonzero(frame, TAG_COLLECT_HOW, request->collect_how);
	frame_add_nonzero(frame, TAG_COLLECT_MS, request->collect_ms);
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

/* The words of a command line.  They may be long, so they do not travel in the
 * head; they may be many, so they share their frames. */
static int
cell_send_words(struct cell *cell, const struct cell_request *request,
    int64_t deadline, struct err *err)
{
	auto_buf struct buf words = BUF_INIT(SIZE_MAX / 2);

	for (size_t i = 0; i < request->word_count; i++) {
		const struct cell_bytes *word = &request->words[i];

		if (word->len > 0 &&
		    memchr(word->data, '\0', word->len) != NULL)
			return err_set(err, ERR_INPUT, "a NUL in a word");
		buf_add(&words, word->data, word->len);
		buf_addc(&words, '\0');
	}
	return cell_send_part(cell, PART_ARGS, words.data, words.len, deadline,
	    err);
}

static int
cell_send_inputs(struct cell *cell, const struct cell_request *request,
    int64_t deadline, struct err *err)
{
	struct frame frame;

	for (size_t i = 0; i < request->input_count; i++) {
		const struct cell_input *input = &request->inputs[i];

		frame_start(&frame, FRAME_INPUT);
		frame_add_text(&frame, TAG_PATH, input->path);
		frame_add_nonzero(&frame, TAG_MODE, input->mode);
		if (input->mtime >= 0)
			frame_add_int(&frame, TAG_MTIME, input->mtime);
		frame_add_nonzero(&frame, TAG_ALWAYS, input->always);
		if (cell_send_frame(cell, &frame, deadline, err) != 0 ||
		    cell_send_part(cell, PART_CONTENT, input->content.data,
			input->content.len, deadline, err) != 0)
			return -1;
	}
	return 0;
}

/* Count what the cell may send back. */
static void
cell_expect(struct cell *cell, const struct cell_request *request)
{
	bool run = request->op == OP_RUN || request->op == OP_BASH;
	bool archive = request->op == OP_ARCHIVE;

	cell->in_request = true;
	cell->started = false;
	cell->file_left = 0;
	cell->output_left = request->output_max;
	if (request->output_mode == OUTPUT_DRAIN)
		cell->output_left *= 2; /* it is the limit of each stream */
	cell->entries_left = request->op == OP_LIST ? request->count :
	    request->op == OP_STAT		    ? 1 :
						      0;
	cell->files_left = run		      ? request->collect_files :
	    request->op == OP_READ || archive ? 1 :
						0;
	cell->bytes_left = run ? request->collect_total : request->max_bytes;
	cell->left_out_left = run || archive ? LIMIT_LEFT_OUT_TAKEN : 0;
}

int
cell_send(struct cell *cell, const struct cell_request *request, int timeout_ms,
    struct err *err)
{
	int64_t deadline = clock_monotonic_ms() + timeout_ms;
	struct frame frame;

	if (cell->in_request)
		return err_set(err, ERR_BUSY, "the cell has a request already");
	cell->waiting.count = 0;
	cell_build_head(&frame, request);
	if (cell_send_frame(cell, &frame, deadline, err) != 0 ||
	    cell_send_part(cell, PART_SOURCE, request->source,
		request->source_len, deadline, err) != 0 ||
	    cell_send_part(cell, PART_STDIN, request->input, request->input_len,
		deadline, err) != 0 ||
	    cell_send_part(cell, PART_CONTENT, request->content,
		request->content_len, deadline, err) != 0 ||
	    cell_send_words(cell, request, deadline, err) != 0 ||
	    cell_send_inputs(cell, request, deadline, err) != 0 ||
	    cell_send_go(cell, request, deadline, err) != 0)
		return -1;
	cell_expect(cell, request);
	return 0;
}

void
cell_enough(struct cell *cell)
{
	struct frame frame;
	struct err err;

	/* A cell that takes it not ends the run by its other limits. */
	frame_start(&frame, FRAME_ENOUGH);
	(void)fd_send_packet(cell->fd, frame.data, frame.len, -1, 0, &err);
}

void
cell_signal(struct cell *cell, int number)
{
	struct frame frame;
	struct err err;

	/* It may be over by now. */
	frame_start(&frame, FRAME_SIGNAL);
	frame_add_int(&frame, TAG_SIGNAL, number);
	(void)fd_send_packet(cell->fd, frame.data, frame.len, -1, 0, &err);
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
cell_read_chunk(const struct frame_view *view, struct cell_event *event,
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
cell_read_entry(struct cell *cell, const struct frame_view *view,
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
cell_read_displayed(const struct frame_view *view, struct cell_event *event)
{
	int64_t displayed;

	if (!get_bounded(view, TAG_DISPLAYED, 0, 1, 0, &displayed))
		return false;
	event->displayed = displayed == 1;
	return true;
}

static bool
cell_read_file(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	event->kind = CELL_FILE;
	if (cell->files_left-- <= 0 || !get_name(view, TAG_PATH, event) ||
	    !is_plain_path(event->name) || !cell_read_displayed(view, event) ||
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
cell_read_left_out(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	int64_t why;

	event->kind = CELL_LEFT_OUT;
	if (cell->left_out_left-- <= 0 || !get_name(view, TAG_PATH, event) ||
	    !is_plain_path(event->name) || !cell_read_displayed(view, event) ||
	    !get_bounded(view, TAG_SIZE, 0, INT64_MAX, 0, &event->size) ||
	    !get_bounded(view, TAG_WHY, LEFT_OUT_COUNT, LEFT_OUT_GONE, 0, &why))
		return false;
	event->why = (enum left_out)why;
	return true;
}

/* The reason and what belongs to it. */
static bool
cell_read_reason(const struct frame_view *view, struct cell_result *result)
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
cell_read_error_text(const struct frame_view *view, struct cell_result *result)
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
cell_read_kept(const struct frame_view *view, struct cell_result *r)
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
cell_read_result(struct cell *cell, const struct frame_view *view,
    struct cell_event *event)
{
	struct cell_result *r = &event->result;
	int64_t full;
	int64_t cut;

	event->kind = CELL_RESULT;
	if (!cell_read_reason(view, r) || !cell_read_kept(view, r) ||
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
	cell_read_error_text(view, r);
	/* Of a staged file; what is no such path is not taken over. */
	(void)frame_get_text(view, TAG_PATH, r->error_path,
	    sizeof(r->error_path));
	cell->in_request = false;
	return true;
}

/* event is all zeros. */
static bool
cell_read_event(struct cell *cell, const struct frame_view *view,
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
		    cell_read_chunk(view, event, &cell->output_left);
	}
	if (view->kind == FRAME_ENTRY)
		return cell_read_entry(cell, view, event);
	if (view->kind == FRAME_FILE)
		return cell_read_file(cell, view, event);
	if (view->kind == FRAME_BYTES) {
		event->kind = CELL_BYTES;
		return cell_read_chunk(view, event, &cell->file_left);
	}
	if (view->kind == FRAME_LEFT_OUT)
		return cell_read_left_out(cell, view, event);
	if (view->kind == FRAME_RESULT)
		return cell_read_result(cell, view, event);
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
	if (!cell_read_event(cell, &view, event))
		return err_set(err, ERR_PROTOCOL,
		    "the cell sent a frame of kind %d that has no place here",
		    (int)view.kind);
	return 0;
}
